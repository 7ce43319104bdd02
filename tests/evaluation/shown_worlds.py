"""What chance showed, small: the toy with hand-computed values, and random worlds with many ties."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caged.data.shown import ShownAtRandom
from caged.evaluation.lists import Lists
from caged.evaluation.reference import Reference
from tests.evaluation.worlds import interactions, make_lists

Scores = dict[int, dict[int, float]]  # user -> item -> score

# Items i0..i19 have 20, 19, ..., 1 training users, so every tenth has two of them and i0..i3 are popular.
ITEMS = 20
LIKED: Scores = {20: {0: 0.9, 5: 0.4}, 21: {7: 0.2}}
NOT_LIKED: Scores = {20: {4: 0.5, 1: 0.3, 6: 0.4}, 21: {6: 0.1, 9: 0.3}}
TOY_VALUES = {
    "shown_auc": 0.625,
    "shown_auc/popular": 1.0,
    "shown_auc/niche": 0.5,
    "shown_auc_within": 0.75,
    "shown_ndcg@2": 0.622038,
    "shown_precision@2": 0.5,
}


class ShownWorld(NamedTuple):
    reference: Reference
    lists: Lists
    scores: np.ndarray  # of the candidates, in their order


def shown_toy() -> ShownWorld:
    train = {user: list(range(ITEMS - user)) for user in range(ITEMS)}
    return shown_world(train, LIKED, NOT_LIKED, user_count=22, item_count=ITEMS)


def random_shown_world(seed: int, users: int = 40, items: int = 30) -> ShownWorld:
    """Some users liked everything, some nothing; scores come in tenths."""
    rng = np.random.default_rng(seed)
    train, liked, not_liked = {}, {}, {}
    for user in range(users):
        order = rng.permutation(items)
        own, shown = order[: rng.integers(1, 8)], order[10 : 10 + rng.integers(0, 12)]
        train[user] = own.tolist()
        wanted = rng.random(len(shown)) < rng.choice([0.0, 0.4, 1.0])
        scores = rng.integers(0, 6, len(shown)) / 10
        for some, chosen in ((liked, wanted), (not_liked, ~wanted)):
            some[user] = {int(i): float(s) for i, s in zip(shown[chosen], scores[chosen], strict=True)}
    return shown_world(train, liked, not_liked, user_count=users, item_count=items)


def shown_world(
    train: dict[int, list[int]], liked: Scores, not_liked: Scores, *, user_count: int, item_count: int
) -> ShownWorld:
    def part(pairs):
        return interactions({user: list(items) for user, items in pairs.items()}, user_count, item_count)

    test = part(liked)
    reference = Reference(part(train), None, test, shown=ShownAtRandom(test, part(not_liked)))
    candidates = reference.candidates
    assert candidates is not None
    both = {user: {**liked[user], **not_liked.get(user, {})} for user in liked}
    pairs = zip(candidates.owners.tolist(), candidates.items.tolist(), strict=True)
    scores = np.array([both[user][item] for user, item in pairs])
    lists = make_lists({user: [int(user) % item_count] for user in candidates.users.tolist()})
    return ShownWorld(reference, lists, scores)
