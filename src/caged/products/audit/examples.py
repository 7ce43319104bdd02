"""A few users to look at, chosen by rule: of each taste group those with a typical popularity lift."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.data.popularity import USER_GROUPS
from caged.evaluation import bias
from caged.evaluation.lists import Lists, PackedLists
from caged.evaluation.reference import Reference
from caged.products.audit.result import ExampleItem, ExampleUser

PER_GROUP = 2
CANDIDATES = 1000  # of each group, evenly spread over the rows: enough for what is typical
PROFILE_SHOWN = 8


def examples_of(
    lists: Lists | PackedLists, reference: Reference, k: int, titles: Mapping[str, str]
) -> tuple[ExampleUser, ...]:
    return tuple(example_of(lists, reference, row, k, titles) for row in typical_users(lists, reference, k))


def typical_users(lists: Lists | PackedLists, reference: Reference, k: int, *, per_group: int = PER_GROUP) -> list[int]:
    """Of each taste group the users whose popularity lift is nearest to the median of the group's, ties by row."""
    listed = lists.users[lists.lengths > 0]
    labels = reference.user_groups.label[listed]
    groups = [listed[labels == group] for group in range(len(USER_GROUPS))]
    return [row for members in groups for row in _typical(lists, reference, members, k)[:per_group]]


def _typical(lists: Lists | PackedLists, reference: Reference, users: Array, k: int) -> list[int]:
    if len(users) == 0:
        return []
    spread = np.unique(np.linspace(0, len(users) - 1, min(CANDIDATES, len(users))).astype(np.int64))
    candidates = users[spread]
    listed = bias.arp(lists.chosen(candidates).items, reference.item_groups.degrees, k)
    lift = bias.popularity_lift(listed, reference.profile_popularity[candidates])
    distance = np.abs(lift - np.median(lift))
    return sorted(candidates[np.argsort(distance, kind="stable")[:PER_GROUP]].tolist())


def example_of(
    lists: Lists | PackedLists, reference: Reference, row: int, k: int, titles: Mapping[str, str]
) -> ExampleUser:
    wanted = set(_items_of(reference.relevant, row).tolist()) if reference.relevant is not None else set()
    groups = reference.item_groups

    def item(number: int) -> ExampleItem:
        item_id = str(reference.train.item_ids.values[number].as_py())
        return ExampleItem(
            item_id, titles.get(item_id), int(groups.degrees[number]), bool(groups.popular[number]), number in wanted
        )

    label = int(reference.user_groups.label[row])
    profile = _items_of(reference.train, row)
    shown = lists.chosen(np.array([row])).items[0, :k]
    return ExampleUser(
        user_id=str(reference.train.user_ids.values[row].as_py()),
        group=USER_GROUPS[label] if label >= 0 else None,
        profile=tuple(item(int(number)) for number in _telling(profile, groups.degrees)),
        profile_size=len(profile),
        shown=tuple(item(int(number)) for number in shown if number >= 0),
    )


def _items_of(part: Interactions, row: int) -> Array:
    return part.items[part.user_offsets[row] : part.user_offsets[row + 1]]


def _telling(profile: Array, degrees: Array) -> Array:
    """From the least to the most popular, evenly: the whole range of a taste in a few items."""
    by_degree = profile[np.argsort(degrees[profile], kind="stable")]
    spread = np.linspace(0, len(by_degree) - 1, min(PROFILE_SHOWN, len(by_degree))).round().astype(np.int64)
    return np.asarray(by_degree[spread])
