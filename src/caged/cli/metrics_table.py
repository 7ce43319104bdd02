"""The metrics of one evaluation as a person wants to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caged.cli.output import print_table
from caged.evaluation.group_names import GroupName, GroupNames
from caged.evaluation.metrics import MetricKey
from caged.page.numbers import number

ACCURACY = ("recall", "ndcg", "ndcg_hits100", "precision", "hit", "mrr", "map")
LISTS = ("arp", "popularity_lift", "delta_gap", "tail_share", "novelty", "coverage", "gini")
DIVERSITY = "intra_list_diversity"  # there where somebody gave vectors
ITEM_GROUPS = ("", "/niche", "/popular")
OF_ITEM_GROUPS = ("recall", "ndcg", "pooled_recall", "exposure_rate", "coverage")
OF_USER_GROUPS = ("recall", "ndcg", "popularity_lift", "delta_gap", "tail_share", "upd")


def print_metrics(metrics: Mapping[str, float], ks: Sequence[int], title: str) -> None:
    """Accuracy with item groups, then the popularity of the lists, for every k."""
    accuracy = [
        [f"{name}@{k}", *(number(metrics.get(f"{name}@{k}{group}")) for group in ITEM_GROUPS)]
        for k in ks
        for name in ACCURACY
        if f"{name}@{k}" in metrics
    ]
    print_table(["accuracy", "all items", "niche", "popular"], accuracy, title=title)
    lists = [[f"{name}@{k}", number(metrics.get(f"{name}@{k}"))] for k in ks for name in LISTS]
    lists += [[key, number(metrics[key])] for k in ks if (key := f"{DIVERSITY}@{k}") in metrics]
    print_table(["popularity of the lists", "value"], lists)


def print_chosen(metrics: Mapping[str, float], ks: Sequence[int], chosen: GroupNames) -> None:
    """A table for each family of groups that somebody chose: a row per group, for every k."""
    for names, families in ((OF_ITEM_GROUPS, chosen.items), (OF_USER_GROUPS, chosen.users)):
        keys = [f"{name}@{k}" for k in ks for name in names]
        for family, groups in families.items():
            rows = [
                [str(GroupName.parse(group).group), *(number(metrics.get(f"{key}/{group}")) for key in keys)]
                for group in groups
            ]
            parity = [f"{name}@{k}/{family}" for k in ks for name in ("rsp", "reo")]
            said = ", ".join(f"{key} {number(metrics[key])}" for key in parity if key in metrics)
            title = f"{'users' if names is OF_USER_GROUPS else 'items'} by {GroupName.parse(family).family}"
            print_table([GroupName.parse(family).family, *keys], rows, title=f"{title}: {said}" if said else title)


def print_shown(
    metrics: Mapping[str, float], floors: Mapping[str, Mapping[str, float]], ranked_by: str, half: str = "all"
) -> None:
    """What chance showed, where that is known: the method, and beside it what is no achievement."""
    keys = [key for key in metrics if MetricKey.parse(key).metric.of_shown]
    if not keys:
        return
    rows = [
        [name, *(number(values.get(key)) for key in keys)] for name, values in {ranked_by: metrics, **floors}.items()
    ]
    users = "" if half == "all" else f", {half} half of the users"
    print_table(["ranked by", *keys], rows, title=f"what chance showed{users}")
