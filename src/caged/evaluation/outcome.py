"""What measuring lists gave, made once and read by whoever writes, shows or compares it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from caged.evaluation.lists import Lists
from caged.evaluation.measure import Report
from caged.evaluation.reference import Reference
from caged.evaluation.tables import per_user_table, recommendations_table, sums_table

BLOCK_PLACES = 2**20  # of lists in one table, and in one row group of a file


@dataclass(frozen=True, eq=False)
class Measured:
    """A report with what it was measured against, and its tables in external identifiers."""

    report: Report
    reference: Reference

    @cached_property
    def per_user(self) -> pa.Table:
        return per_user_table(self.report, self.reference.train.user_ids)

    @cached_property
    def sums(self) -> pa.Table:
        return sums_table(self.report, self.reference.train.user_ids)


@dataclass(frozen=True, eq=False)
class Evaluation(Measured):
    """The metrics of a model and the lists they were computed from."""

    lists: Lists

    @cached_property
    def recommendations(self) -> pa.Table:
        train = self.reference.train
        return recommendations_table(self.lists, train.user_ids, train.item_ids)

    def recommendation_blocks(self) -> Iterator[pa.Table]:
        """The same a million places at a time: of millions of users, all of them would take many times the lists."""
        train = self.reference.train
        for part in self.lists.parts(BLOCK_PLACES):
            yield recommendations_table(part, train.user_ids, train.item_ids)
