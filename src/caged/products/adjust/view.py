"""`caged.adjust`: lists or vectors of any recommender, from Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from caged.arguments import choice, place, whole_number
from caged.data.readers.columns import Columns
from caged.errors import ConfigError
from caged.evaluation.adjust.choice import FORMS, KEEP, Form, checked_share
from caged.page.text_table import plain_lines
from caged.products.adjust.judge import Outcome
from caged.products.adjust.of_lists import ListsToAdjust, adjust_lists
from caged.products.adjust.tables import change_table, sentences

LONGEST = 10**6


@dataclass(frozen=True, eq=False)
class Adjusted:
    """Lists after the adjustment, and what it costs and brings; printing it tells both."""

    table: pa.Table  # user_id, item_id, score, rank
    outcome: Outcome
    notes: tuple[str, ...]

    @property
    def strength(self) -> float:
        return self.outcome.adjustment.strength

    def __str__(self) -> str:
        table = change_table(self.outcome)
        lines = plain_lines(table.headers, table.rows) if table.rows else []
        return "\n".join([*sentences(self.outcome), *lines])


def adjust(
    recs: Any,
    train: Any,
    *,
    valid: Any = None,
    test: Any = None,
    keep: float = KEEP,
    strength: float | None = None,
    form: Form = "degree",
    k: int = 20,
    ids: str = "auto",
) -> Adjusted:
    """Take popularity out of the lists of any recommender.

    `recs` are candidates: user_id, item_id and score (or rank, for `form="quota"`), five times as many per user as the
    lists shall have places; a file or any frame that speaks Arrow. `train` is the log that the recommender learned
    from. The strength is the largest that keeps the share `keep` of recall@k on `valid`, or the one given. `test` only
    shows the price. For a model of ours use `model.adjusted(keep=...)`; for vectors `caged adjust` on the command line.
    """
    if hasattr(recs, "adjusted"):
        raise ConfigError("this is a model, not lists; use model.adjusted(keep=...)")
    k = whole_number("k", k, least=1, most=LONGEST)
    choice("form", form, FORMS)
    strength = None if strength is None else checked_share("strength", strength)
    recs = place("recs", recs) if isinstance(recs, str | Path) else recs
    given = ListsToAdjust.read(recs, train, valid=valid, test=test, columns=Columns().reading_ids(ids))
    outcome = adjust_lists(given, form, k=k, strength=strength, keep=keep)
    table, _ = given.table(outcome.adjustment, k)
    return Adjusted(table, outcome, given.notes)
