"""Vectors that somebody else trained, adjusted: two tables in, two tables out, a dot product as before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from caged.data.ids import Array, IdMap
from caged.data.readers.columns import Columns
from caged.data.readers.files import DEFAULT_COLUMNS
from caged.data.vector_files import NamedVectors, check_suffix, read_vectors, write_vectors
from caged.errors import ConfigError, DataError
from caged.evaluation.adjust.choice import KEEP, Adjustment, Form
from caged.evaluation.adjust.of_scores import adjusted_vectors
from caged.files import new_folder
from caged.graph import Tables
from caged.models import DotScorer
from caged.products.adjust.judge import Outcome, judged, judges_of
from caged.products.adjust.ranking import ranking_of
from caged.products.audit import AuditInputs, Log, read_inputs

USERS, ITEMS = "users", "items"


@dataclass(frozen=True, eq=False)
class VectorsToAdjust:
    """Vectors of everybody and everything that the logs or the files name, with the logs on that catalogue."""

    inputs: AuditInputs
    tables: Tables

    @classmethod
    def read(
        cls,
        user_file: Path,
        item_file: Path,
        train: Log,
        *,
        valid: Log | None = None,
        test: Log | None = None,
        columns: Columns = DEFAULT_COLUMNS,
    ) -> VectorsToAdjust:
        users, items = read_vectors(user_file, "user_id"), read_vectors(item_file, "item_id")
        if users.vectors.shape[1] != items.vectors.shape[1]:
            raise DataError(
                f"{user_file} has vectors of {users.vectors.shape[1]} numbers and {item_file} of "
                f"{items.vectors.shape[1]}; scores are products of the two, so they need the same length"
            )
        inputs = read_inputs(train, valid=valid, test=test, columns=columns)
        inputs = inputs.joined_by(*(IdMap.of(named.ids) for named in (users, items)))
        tables = Tables(
            _in_rows(users, inputs.train.user_ids, str(user_file)),
            _in_rows(items, inputs.train.item_ids, str(item_file)),
        )
        return cls(inputs, tables)

    def write(self, adjustment: Adjustment, folder: Path, suffix: str) -> None:
        """`users` and `items` in a new folder; the scores of the adjusted recommender are their products."""
        found = self.tables if adjustment.is_neutral else adjusted_vectors(self.tables, self.inputs.train, adjustment)
        train = self.inputs.train
        with new_folder(folder) as temporary:
            write_vectors(temporary / f"{USERS}{suffix}", "user_id", _named(train.user_ids, found.users))
            write_vectors(temporary / f"{ITEMS}{suffix}", "item_id", _named(train.item_ids, found.items))


def _in_rows(named: NamedVectors, ids: IdMap, where: str) -> torch.Tensor:
    return torch.from_numpy(named.of(ids, where))


def _named(ids: IdMap, vectors: torch.Tensor) -> NamedVectors:
    numbers: Array = np.asarray(vectors.numpy())
    return NamedVectors(ids.values, numbers)


def check_vector_files(user_file: Path, item_file: Path) -> str:
    """The format that both have."""
    for file in (user_file, item_file):
        check_suffix(file)
    if user_file.suffix != item_file.suffix:
        raise ConfigError(f"{user_file} and {item_file} are of two formats; write both as one")
    return user_file.suffix


def adjust_vectors(
    given: VectorsToAdjust,
    form: Form,
    *,
    k: int,
    strength: float | None = None,
    keep: float = KEEP,
    with_curve: bool = False,
) -> Outcome:
    """Choose the strength on the validation part, and measure it there and on the test part, where there is one."""
    inputs = given.inputs
    rank = ranking_of(DotScorer(given.tables), inputs.train)
    judges = judges_of(inputs.train, inputs.valid, inputs.test, rank, form, k)
    return judged(judges, form, k, strength=strength, keep=keep, with_curve=with_curve)
