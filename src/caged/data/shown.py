"""What chance showed: items put before users at random, of which they liked some and not the others.

Where a test part comes with what was shown at random and not liked (`test_negative`), the fair question is how a method
orders what chance put before a user: nobody chose these items, so popularity has no head start among them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.popularity import BUCKETS, ItemGroups
from caged.data.seen import check_same_rows, find
from caged.errors import ConfigError, DataError, unknown

HALVES = ("all", "first", "second")
SOURCE = "source"  # the column by which a log marks what filled a slot


@dataclass(frozen=True, eq=False)
class ShownAtRandom:
    """Pairs that chance showed, liked and not liked, with shared id maps; no pair is in both."""

    liked: Interactions
    not_liked: Interactions
    half: str = "all"  # of the users

    def __post_init__(self) -> None:
        check_same_rows(self.liked, self.not_liked)
        both = int(np.count_nonzero(find(self.liked.keys, self.not_liked.keys) >= 0))
        if both:
            raise DataError(f"{both} of the pairs shown at random are both liked and not liked; remove them from one")

    @classmethod
    def of(cls, test: Interactions, test_negative: Interactions, half: str = "all") -> ShownAtRandom:
        """From the parts of a split.

        Where both mark the `source` of their pairs, only test pairs of a source that test_negative names were shown at
        random: clicks on what a shop chose to show are no part of the comparison. `half` keeps one half of the users.
        """
        if half not in HALVES:
            raise ConfigError(unknown("half of the users", str(half), HALVES))
        liked = test
        if SOURCE in test.columns and SOURCE in test_negative.columns:
            liked = test.select(np.isin(test.columns[SOURCE], np.unique(test_negative.columns[SOURCE])))
        if half == "all":
            return cls(liked, test_negative)
        in_first = in_first_half(test.user_ids)
        chosen = in_first if half == "first" else ~in_first
        return cls(liked.select(chosen[liked.users]), test_negative.select(chosen[test_negative.users]), half)

    @cached_property
    def fingerprint(self) -> str:
        """Of both parts."""
        lines = f"liked\t{self.liked.fingerprint}\nnot liked\t{self.not_liked.fingerprint}\n"
        return hashlib.sha256(lines.encode()).hexdigest()


def in_first_half(user_ids: IdMap) -> Array:
    """Which users are in the first half: by the last bit of the SHA-256 of the id as text.

    It depends on nothing but the id, so a user is in the same half in every dataset, run and version.

    >>> in_first_half(IdMap.of([0, 1, 2, 3, 4, 5])).tolist()
    [False, False, False, True, True, False]
    """
    texts = user_ids.values.cast(pa.large_string()).to_pylist()
    return np.array([hashlib.sha256(text.encode()).digest()[-1] % 2 == 0 for text in texts], dtype=bool)


# ---------------------------------------------------------------- how much popularity is worth


class TopAndBottom(NamedTuple):
    """A figure of the most and of the least popular tenth of the trained items."""

    top: float
    bottom: float

    @property
    def ratio(self) -> float:
        return self.top / self.bottom if self.bottom else float("nan")


class PopularityContrast(NamedTuple):
    """What popularity is in the training log, and what it is worth where chance shows the items."""

    degree: TopAndBottom  # mean number of training users of an item
    like_rate: TopAndBottom  # share of the pairs shown at random that were liked

    def to_json(self) -> dict[str, dict[str, float]]:
        return {name: {**one._asdict(), "ratio": one.ratio} for name, one in self._asdict().items()}


def popularity_contrast(groups: ItemGroups, shown: ShownAtRandom) -> PopularityContrast:
    """By tenths of the trained items; items without training interactions are left out."""
    trained = groups.degrees > 0
    liked = shown.liked.item_degrees
    pairs = liked + shown.not_liked.item_degrees

    def of(bucket: int) -> tuple[float, float]:
        members = trained & (groups.bucket == bucket)
        return _ratio(groups.degrees[members].sum(), members.sum()), _ratio(liked[members].sum(), pairs[members].sum())

    degrees, rates = zip(of(0), of(BUCKETS - 1), strict=True)
    return PopularityContrast(TopAndBottom(*degrees), TopAndBottom(*rates))


def _ratio(part: int, whole: int) -> float:
    return float(part / whole) if whole else float("nan")
