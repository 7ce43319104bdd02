"""Validation from the interactions that a log marks, such as its randomised traffic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.data.splits.kinds import Split
from caged.errors import ConfigError, DataError, suggestion

MOST_LISTED = 10  # values in an error message


def parse_mark(text: str) -> tuple[str, str]:
    """Column and value of `COLUMN=VALUE`.

    >>> parse_mark("source=explore")
    ('source', 'explore')
    """
    column, equals, value = (part.strip() for part in text.partition("="))
    if not (column and equals and value):
        raise ConfigError(f"cannot read --validate-on '{text}'; write it as COLUMN=VALUE, e.g. source=explore")
    return column, value


def validate_on(parts: Split, mark: str) -> Split:
    """The same split with only those validation interactions that carry the mark `COLUMN=VALUE`.

    For a log that marks its randomised traffic: clicks on what a popularity-driven shop chose to show stop a debiased
    method early and hide its gain, clicks on randomly shown items do not. What is held out first is what the split
    holds out anyway; only then is it filtered. (A share of each user's marked interactions would be rounded down to
    none for most users, since there are few.) The other candidates go back to train: left out of both, they would be
    lost for training and, unmasked, take the places of test items in the lists. So under a time split train reaches
    into the period of validation; test still lies after both.

    The test part stays as it is; it is neither filtered nor searched for the value.
    """
    column, value = parse_mark(mark)
    if parts.valid is None:
        raise DataError(f"this split has no validation part that {mark} could choose from; leave --validate-on out")
    marked_in_train = _texts(parts.train, column) == value
    marked = _texts(parts.valid, column) == value
    if not marked.any():
        raise DataError(_nothing_to_validate_on(parts, column, value, int(marked_in_train.sum())))
    return replace(
        parts,
        train=Interactions.joined([parts.train, parts.valid.select(~marked)]),
        valid=parts.valid.select(marked),
        parameters={**parts.parameters, "validate_on": f"{column}={value}"},
        notes={
            **parts.notes,
            "validation_candidates": len(marked),
            "validation_returned_to_train": int(np.count_nonzero(~marked)),
        },
    )


def _nothing_to_validate_on(parts: Split, column: str, value: str, marked_in_train: int) -> str:
    assert parts.valid is not None
    if marked_in_train:
        return (
            f"none of the {len(parts.valid)} interactions held out for validation has {column}={value}, while train "
            f"has {marked_in_train}; use another data.split_seed, or validate on all of them"
        )
    found = sorted({str(text) for part in (parts.train, parts.valid) for text in np.unique(_texts(part, column))})
    listed = ", ".join(repr(text) for text in found[:MOST_LISTED]) + (", ..." if len(found) > MOST_LISTED else "")
    return f"no interaction has {column}={value}, values found: {listed}; choose one of them{suggestion(value, found)}"


def _texts(part: Interactions, column: str) -> Array:
    """The values of a column as text, whatever their type; nulls are empty."""
    if column not in part.columns:
        carried = ", ".join(f"'{name}'" for name in part.columns) or "none"
        raise DataError(f"column '{column}' was not read with the log (carried: {carried}); keep it with Columns.keep")
    try:
        texts = pc.fill_null(pa.array(part.columns[column]).cast(pa.string()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise DataError(
            f"the values of column '{column}' cannot be compared as text ({error}); mark the traffic with text"
        ) from error
    return np.asarray(texts.to_numpy(zero_copy_only=False), dtype=object)
