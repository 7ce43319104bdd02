"""Lists that somebody else made, adjusted: another order of the candidates that they hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from caged.data.interactions import Interactions
from caged.data.readers.columns import Columns
from caged.data.readers.files import DEFAULT_COLUMNS
from caged.errors import ConfigError, DataError
from caged.evaluation.adjust.choice import KEEP, Adjustment, Form
from caged.evaluation.adjust.of_lists import adjusted_lists, check_candidates
from caged.evaluation.foreign.ordering import Entries, ordered, without_repeats
from caged.evaluation.foreign.scan import Recommendations, Scan, scan
from caged.evaluation.lists import PADDING, Lists
from caged.evaluation.reference import Reference
from caged.evaluation.tables import recommendations_table
from caged.products.adjust.judge import Outcome, judged, judges_of
from caged.products.audit import USUAL, AuditInputs, ListNames, Log, read_inputs

MOST_ROWS = 1 << 27  # of lists, which are all in memory here: about 4 GiB


@dataclass(frozen=True, eq=False)
class ListsToAdjust:
    """Candidates with the logs that they belong to, on one catalogue."""

    inputs: AuditInputs
    lists: Lists
    where: str
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls,
        recs: Any,
        train: Log,
        *,
        valid: Log | None = None,
        test: Log | None = None,
        columns: Columns = DEFAULT_COLUMNS,
        list_columns: ListNames = USUAL,
    ) -> ListsToAdjust:
        inputs = read_inputs(train, valid=valid, test=test, columns=columns)
        source = Recommendations.of(recs, list_columns.beside(columns))
        scanned = scan(source, inputs.user_ids, inputs.item_ids)
        if scanned.rows > MOST_ROWS:
            raise DataError(
                f"{source.where} holds {scanned.rows:,} rows, and at most {MOST_ROWS:,} can be adjusted at a time; cut "
                f"it into parts by user"
            )
        if scanned.rows_of_unknown_items * 2 > scanned.rows:
            raise DataError(
                f"{scanned.rows_of_unknown_items:,} of the {scanned.rows:,} rows of {source.where} name items that no "
                f"log knows, so their popularity is unknown; give the log that the recommender learned from"
            )
        joined = inputs.joined_by(scanned.unknown_users, scanned.unknown_items)
        return cls(joined, _with_scores(scanned, joined.train), source.where, (*inputs.notes, *scanned.notes))

    def table(self, adjustment: Adjustment, k: int) -> tuple[pa.Table, int]:
        """The adjusted lists without what users had in train, and how many were short of niche candidates."""
        unseen = _without_seen(self.lists, Reference(self.inputs.train))
        found = adjusted_lists(unseen, self.inputs.train, adjustment, k)
        return recommendations_table(
            found.lists, self.inputs.train.user_ids, self.inputs.train.item_ids
        ), found.short_of_niche


def adjust_lists(
    given: ListsToAdjust,
    form: Form,
    *,
    k: int,
    strength: float | None = None,
    keep: float = KEEP,
    with_curve: bool = False,
) -> Outcome:
    """Choose the strength on the validation part, and measure it there and on the test part, where there is one."""
    if form == "norm":
        raise ConfigError("form 'norm' needs vectors, and these are lists; use form 'degree' or 'quota'")
    check_candidates(given.lists, k, given.where)
    inputs = given.inputs

    def rank(adjustment: Adjustment, reference: Reference, places: int) -> Lists:
        return adjusted_lists(_without_seen(given.lists, reference), inputs.train, adjustment, places).lists

    judges = judges_of(inputs.train, inputs.valid, inputs.test, rank, form, k)
    return judged(judges, form, k, strength=strength, keep=keep, with_curve=with_curve)


def _without_seen(lists: Lists, reference: Reference) -> Lists:
    """What users had already is no candidate; later items move up."""
    items = np.where(lists.items == PADDING, 0, lists.items)
    users = np.repeat(lists.users, lists.width)
    seen = reference.seen.holds(users, items.reshape(-1)).reshape(items.shape)
    gone = seen | (lists.items == PADDING)
    if bool((gone == (lists.items == PADDING)).all()):
        return lists
    order = np.argsort(gone, axis=1, kind="stable")
    moved = np.take_along_axis(gone, order, axis=1)
    scores = None
    if lists.scores is not None:
        scores = np.where(moved, -np.inf, np.take_along_axis(lists.scores, order, axis=1)).astype(np.float32)
    return Lists(lists.users, np.where(moved, PADDING, np.take_along_axis(lists.items, order, axis=1)), scores)


def _with_scores(scanned: Scan, train: Interactions) -> Lists:
    """All rows of the table as lists, in order and without repeats."""
    pieces = list(scanned.pieces())
    user_row, item_row = scanned.users.rows_in(train.user_ids), scanned.items.rows_in(train.item_ids)
    users = np.concatenate([piece.users for piece in pieces])
    items = np.concatenate([piece.items for piece in pieces])
    users = users if user_row is None else user_row[users]
    items = items if item_row is None else item_row[items]
    by_user = np.argsort(users, kind="stable")
    listed, local = np.unique(users[by_user], return_inverse=True)

    def column(name: str) -> np.ndarray[Any, Any] | None:
        parts = [getattr(piece, name) for piece in pieces]
        return None if parts[0] is None else np.concatenate(parts)[by_user]

    rows = without_repeats(ordered(Entries(local, items[by_user], column("rank"), column("score"))))
    made = Lists.from_flat(rows.local, rows.items, rows.score)
    return replace(made, users=listed.astype(np.int64))
