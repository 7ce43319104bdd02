"""How a method orders what chance put before a user: one value per user, from the scores of the pairs shown at random.

The candidates of a user are the items shown at random, liked or not; nothing is masked and nothing else is ranked. Only
users with at least one of each have a value; for the others it is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import BUCKETS
from caged.data.seen import find
from caged.data.shown import ShownAtRandom
from caged.errors import DataError
from caged.evaluation import ranking
from caged.evaluation.lists import PackedLists

BLOCK_USERS = 1 << 14  # whose lists are searched at a time


@dataclass(frozen=True, eq=False)
class Candidates:
    """What was shown to the users who liked some of it and not the rest; by user, then item row.

    >>> from caged.data.interactions import Interactions
    >>> test = Interactions.from_ids(["ann", "ann", "bob"], ["x", "y", "x"])
    >>> both = ShownAtRandom(test.select([0, 2]), test.select([1]))
    >>> Candidates.of(both).users.tolist(), Candidates.of(both).liked.tolist()
    ([0], [True, False])
    """

    users: Array  # rows, ascending
    offsets: Array  # the pairs of users[n] are those at offsets[n]..offsets[n + 1]
    items: Array
    liked: Array  # bool

    @classmethod
    def of(cls, shown: ShownAtRandom) -> Candidates:
        keys = np.concatenate((shown.liked.keys, shown.not_liked.keys))
        liked = np.arange(len(keys)) < len(shown.liked)
        order = np.argsort(keys, kind="stable")  # merges two ascending runs
        owners, items = np.divmod(keys[order], max(shown.liked.item_count, 1))
        both = (shown.liked.user_degrees > 0) & (shown.not_liked.user_degrees > 0)
        kept = both[owners]
        counts = np.bincount(owners[kept], minlength=len(both))[both]
        return cls(np.flatnonzero(both), np.append(0, np.cumsum(counts)), items[kept], liked[order][kept])

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def owners(self) -> Array:
        """The user row of every pair."""
        return np.repeat(self.users, np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class ShownScores:
    """What a method makes of the candidates: a score for each, higher is better.

    `shuffled` stands for any order with the same chance; values are then those to be expected.
    """

    candidates: Candidates
    scores: Array
    shuffled: bool = False

    @classmethod
    def of_random_choice(cls, candidates: Candidates) -> ShownScores:
        return cls(candidates, np.zeros(len(candidates)), shuffled=True)

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.candidates):
            raise DataError(f"there are {len(self.scores)} scores for {len(self.candidates)} pairs shown at random")
        if bool(np.isnan(self.scores).any()):
            raise DataError("a score of a pair shown at random is NaN where a number is needed; repair the scores")

    def of_users(self, users: Array) -> ShownBlock:
        """Those of some user rows, ascending; a user without candidates has none."""
        shown = self.candidates
        start, stop = np.searchsorted(shown.users, [users[0], users[-1] + 1]) if len(users) else (0, 0)
        pairs = slice(int(shown.offsets[start]), int(shown.offsets[stop]))
        place = np.searchsorted(users, shown.users[start:stop])
        inside = users[np.minimum(place, len(users) - 1)] == shown.users[start:stop]
        counts = np.diff(shown.offsets[start : stop + 1])
        kept = np.repeat(inside, counts)
        return ShownBlock(
            len(users),
            np.repeat(place, counts)[kept],
            shown.items[pairs][kept],
            shown.liked[pairs][kept],
            self.scores[pairs][kept],
            self.shuffled,
        )


@dataclass(frozen=True, eq=False)
class ShownBlock:
    """The candidates of `user_count` users with their scores; `owners` number these users from 0, ascending.

    >>> liked = np.array([True, True, False, False, False])
    >>> one = ShownBlock(1, np.zeros(5, int), np.arange(5), liked, np.array([0.9, 0.4, 0.5, 0.3, 0.4]))
    >>> one.auc().tolist(), one.ndcg(2).round(6).tolist(), one.precision(2).tolist()
    ([0.75], [0.613147], [0.5])
    """

    user_count: int
    owners: Array
    items: Array
    liked: Array
    scores: Array
    shuffled: bool = False

    @classmethod
    def empty(cls, user_count: int) -> ShownBlock:
        nothing = np.zeros(0, dtype=np.int64)
        return cls(user_count, nothing, nothing, nothing.astype(bool), nothing.astype(np.float64))

    def auc(self, liked_counted: Array | None = None) -> Array:
        """Share of the (liked, not liked) pairs in the right order, a tie for a half.

        `liked_counted`, a mask over the candidates, leaves the other liked items out; those not liked all stay.
        """
        chosen = np.ones(len(self.items), dtype=bool) if liked_counted is None else ~self.liked | liked_counted
        right, pairs = ordered_pairs(self.owners[chosen], self.scores[chosen], self.liked[chosen], self.user_count)
        return _share(right, pairs)

    def auc_within(self, bucket: Array) -> Array:
        """The same of pairs whose items are in the same popularity bucket; `bucket` is that of every candidate."""
        segments = self.owners * BUCKETS + bucket
        right, pairs = ordered_pairs(segments, self.scores, self.liked, self.user_count * BUCKETS)
        return _share(*(values.reshape(self.user_count, BUCKETS).sum(axis=1) for values in (right, pairs)))

    def ndcg(self, k: int) -> Array:
        """NDCG of the candidates alone, best first, ties by item row."""
        return ranking.ndcg(self._hits(k), self._counts(self.liked), k)

    def precision(self, k: int) -> Array:
        """Share of liked items among the first k, or among all where there are fewer."""
        return _share(self._hits(k).sum(axis=1), np.minimum(self._counts(), k))

    def _hits(self, k: int) -> Array:
        """(users, k): which of the first k candidates are liked; how likely it is, where they are shuffled."""
        if self.shuffled:
            count = self._counts()
            return (np.arange(k) < count[:, None]) * _share(self._counts(self.liked), np.maximum(count, 1))[:, None]
        order = np.lexsort((self.items, -self.scores, self.owners))
        places = np.arange(len(order)) - np.searchsorted(self.owners, self.owners)  # owners stay as they are
        first = places < k
        hits = np.zeros((self.user_count, k), dtype=bool)
        hits[self.owners[first], places[first]] = self.liked[order][first]
        return hits

    def _counts(self, chosen: Array | None = None) -> Array:
        return np.bincount(self.owners if chosen is None else self.owners[chosen], minlength=self.user_count)


def ordered_pairs(segments: Array, scores: Array, liked: Array, count: int) -> tuple[Array, Array]:
    """For each of `count` segments: how many (liked, not liked) pairs are in the right order, and how many there are.

    >>> scores, liked = np.array([0.9, 0.4, 0.5, 0.3, 0.4]), np.array([True, True, False, False, False])
    >>> [part.tolist() for part in ordered_pairs(np.zeros(5, int), scores, liked, 1)]
    [[4.5], [6]]
    """
    order = np.lexsort((scores, segments))
    segments, scores, liked = segments[order], scores[order], liked[order]
    # Runs of equal scores: a liked item is ahead of those not liked in earlier runs, and halfway those of its own.
    differs = (segments[1:] != segments[:-1]) | (scores[1:] != scores[:-1])  # no subtraction: scores may be infinite
    opens = np.append(True, differs)[: len(segments)]
    run = np.cumsum(opens) - 1
    in_run = np.bincount(run, weights=liked), np.bincount(run, weights=~liked)
    of_run = segments[opens]
    all_liked, all_others = (np.bincount(of_run, weights=number, minlength=count) for number in in_run)
    before = np.cumsum(in_run[1]) - in_run[1] - (np.cumsum(all_others) - all_others)[of_run]
    right = np.bincount(of_run, weights=in_run[0] * (before + 0.5 * in_run[1]), minlength=count)
    return right, (all_liked * all_others).astype(np.int64)


def _share(part: Array, whole: Array) -> Array:
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


def listed_scores(lists: PackedLists, candidates: Candidates, item_count: int) -> Array:
    """Scores of the candidates from lists that somebody else made: the higher, the further up.

    Items that are equally good in a list are tied; those that it lacks are tied behind all that it holds.

    >>> lists = PackedLists(np.array([0]), np.array([0, 3]), np.array([4, 1, 2]), np.array([0, 1, 1]))
    >>> liked = np.array([True, False, False, True])
    >>> shown = Candidates(np.array([0]), np.array([0, 4]), np.array([1, 2, 3, 4]), liked)
    >>> listed_scores(lists, shown, 5).tolist()
    [-1.0, -1.0, -inf, 0.0]
    """
    scores = np.full(len(candidates), -np.inf)
    levels = np.arange(len(lists.items)) - np.repeat(lists.offsets[:-1], lists.lengths)
    levels = levels if lists.levels is None else lists.levels
    width = np.int64(max(item_count, 1))
    for start in range(0, len(candidates.users), BLOCK_USERS):
        users = candidates.users[start : start + BLOCK_USERS]
        pairs = slice(int(candidates.offsets[start]), int(candidates.offsets[start + len(users)]))
        first, last = np.searchsorted(lists.users, [users[0], users[-1] + 1])
        rows = slice(int(lists.offsets[first]), int(lists.offsets[last]))
        owners = np.repeat(lists.users[first:last], lists.lengths[first:last])
        keys = owners * width + lists.items[rows]
        order = np.argsort(keys)
        place = find(keys[order], candidates.owners[pairs] * width + candidates.items[pairs])
        level = np.append(levels[rows][order], 0)[place]  # of an absent one anything
        scores[pairs] = np.where(place < 0, -np.inf, -level.astype(np.int64))
    return scores
