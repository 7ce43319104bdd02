"""`Family`: items, or users, sorted into named groups by something that is not in a log, such as a genre."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from caged.data.ids import Array

MOST_GROUPS = 50  # of one family; more are rather identifiers or numbers than groups
NO_GROUP = -1


@dataclass(frozen=True, eq=False)
class Family:
    """A row may be in one group, in several or in none.

    >>> genre = Family("genre", ("Comedy", "Drama"), np.array([[0, 1, 0, -1], [-1, -1, 1, -1]], dtype=np.int8))
    >>> genre.member(0).tolist(), genre.sizes.tolist(), genre.ungrouped
    ([True, False, True, False], [2, 2], 1)
    >>> genre.at(np.array([2, -1, 1])).labels.tolist()
    [[0, -1, 1], [1, -1, -1]]
    """

    name: str
    groups: tuple[str, ...]  # their names, sorted
    labels: Array  # int8 (most groups of a row, rows): indices into `groups`, NO_GROUP where there is none, or no more

    def __len__(self) -> int:
        return int(self.labels.shape[1])

    def member(self, group: int) -> Array:
        """Mask of the rows in a group."""
        return np.asarray((self.labels == group).any(axis=0))

    def at(self, rows: Array) -> Family:
        """The same of other rows: those of these numbers, -1 being a row without a group."""
        nowhere = np.full((len(self.labels), 1), NO_GROUP, dtype=np.int8)
        return replace(self, labels=np.concatenate([self.labels, nowhere], axis=1)[:, rows])

    @cached_property
    def sizes(self) -> Array:
        """Rows per group."""
        return np.bincount(self.labels[self.labels != NO_GROUP].astype(np.int64), minlength=len(self.groups))

    @property
    def ungrouped(self) -> int:
        """Rows in no group."""
        return int(np.count_nonzero((self.labels == NO_GROUP).all(axis=0)))
