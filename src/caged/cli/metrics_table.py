"""The metrics of one evaluation as a person wants to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caged.cli.output import print_table
from caged.page.numbers import number

ACCURACY = ("recall", "ndcg", "ndcg_hits100", "precision", "hit", "mrr", "map")
LISTS = ("arp", "popularity_lift", "delta_gap", "tail_share", "novelty", "coverage", "gini")
ITEM_GROUPS = ("", "/niche", "/popular")


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
    print_table(["popularity of the lists", "value"], lists)
