"""Audits of made-up lists: real metrics, intervals of a fixed width."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.popularity import USER_GROUPS, ItemGroups
from caged.evaluation.bootstrap import Interval
from caged.evaluation.lists import Lists
from caged.evaluation.measure import measure
from caged.evaluation.reference import Reference
from caged.evaluation.tables import per_user_table
from caged.products.audit.evidence import Evidence
from caged.products.audit.result import AuditResult, ExampleItem, ExampleUser, Exposure

USERS, ITEMS, PROFILE, K = 120, 80, 9, 10


def made_up(
    *,
    test: bool = True,
    evidence: Evidence = "natural",
    popular: float = 1.0,
    intervals: bool = True,
    width: float = 0.02,
    seed: int = 1,
) -> AuditResult:
    """Lists that follow the popularity of the items to the power of `popular`, for users who do not."""
    generator = np.random.default_rng(seed)
    weight = 1.0 / np.arange(1, ITEMS + 1)
    user_ids, item_ids = IdMap.range(USERS), IdMap.range(ITEMS)
    drawn = [generator.choice(ITEMS, PROFILE + 4, replace=False, p=weight / weight.sum()) for _ in range(USERS)]

    def part(first: int, last: int) -> Interactions:
        users = np.repeat(np.arange(USERS), last - first)
        items = np.concatenate([items[first:last] for items in drawn])
        return Interactions.build(users, items, user_ids=user_ids, item_ids=item_ids)

    train, relevant = part(0, PROFILE), part(PROFILE, PROFILE + 4)
    lists = _lists(train, weight**popular, generator)
    report = measure(lists, Reference(train, None, relevant if test else None), (K,))
    groups = ItemGroups.from_degrees(train.item_degrees)
    metrics = report.metrics
    return AuditResult(
        name="made-up lists",
        ks=(K,),
        metrics=metrics,
        users=report.users_per_metric,
        intervals=_around(metrics, width) if intervals else {},
        counts=report.counts,
        notes=("3 listed items were not in the catalogue and joined it with 0 training users.",),
        evidence=evidence if test else "none",
        exposure=Exposure(
            item_ids,
            train.item_degrees,
            groups.popular,
            groups.bucket,
            relevant.item_degrees if test else None,
            {K: np.bincount(lists.items[:, :K].ravel(), minlength=ITEMS)},
        ),
        examples=_examples(train, relevant if test else None, lists, groups, report.user_group),
        per_user=per_user_table(report, user_ids),
        fingerprints={"train": train.fingerprint},
        command="caged audit 'my lists.csv' --train train.csv --test test.csv",
        titles={str(row): f"The <Tale> of Item {row} & Co" for row in range(1, ITEMS, 2)},
    )


def with_further_tests() -> AuditResult:
    oracle, random = made_up(evidence="oracle", seed=2), made_up(evidence="random", seed=3)
    return replace(made_up(), further={"truth": oracle, "shuffled": random})


def with_values(audit: AuditResult, width: float = 0.001, **values: float) -> AuditResult:
    """With some metrics replaced; `recall_niche_taste` stands for recall@10/niche-taste."""
    names = {key.replace("@10", "").replace("/", "_").replace("-", "_"): key for key in audit.metrics}
    changed = {names[name]: value for name, value in values.items()}
    metrics = {**audit.metrics, **changed}
    return replace(audit, metrics=metrics, intervals={**audit.intervals, **_around(changed, width)})


def _around(metrics: dict[str, float], width: float) -> dict[str, Interval]:
    return {
        key: Interval(value - width, value + width, "bootstrap")
        for key, value in metrics.items()
        if math.isfinite(value) and key.split("@")[0] not in ("coverage", "gini", "entropy")
    }


def _lists(train: Interactions, weight: Array, generator: np.random.Generator) -> Lists:
    rows = []
    for user in range(USERS):
        free = weight.copy()
        free[train.items[train.users == user]] = 0
        rows.append(generator.choice(ITEMS, 2 * K, replace=False, p=free / free.sum()))
    return Lists(np.arange(USERS), np.array(rows))


def _examples(
    train: Interactions, relevant: Interactions | None, lists: Lists, groups: ItemGroups, labels: Array
) -> tuple[ExampleUser, ...]:
    def item(user: int, row: int) -> ExampleItem:
        wanted = relevant is not None and row in relevant.items[relevant.users == user]
        title = f"The <Tale> of Item {row} & Co" if row % 2 else None
        return ExampleItem(str(row), title, int(groups.degrees[row]), bool(groups.popular[row]), wanted)

    def example(user: int) -> ExampleUser:
        had = train.items[train.users == user]
        shown = tuple(item(user, int(row)) for row in lists.items[user, :K])
        profile = tuple(item(user, int(row)) for row in had[:5])
        return ExampleUser(str(user), USER_GROUPS[labels[user]], profile, len(had), shown)

    return tuple(example(int(np.flatnonzero(labels == group)[0])) for group in range(len(USER_GROUPS)))
