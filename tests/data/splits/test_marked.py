"""Validation on the interactions that a log marks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caged.data import (
    KINDS,
    Interactions,
    Split,
    carve_validation,
    given_split,
    split,
    split_log,
    validate_on,
)
from caged.errors import ConfigError, DataError
from tests.data.splits.logs import Pair, assignment, marked_log, pairs_of


def marks_by_pair(data: Interactions) -> dict[Pair, object]:
    return dict(zip(pairs_of(data), data.columns["source"].tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_validation_keeps_the_marked_candidates_and_returns_the_others(kind: str) -> None:
    data = marked_log()
    usual = split_log(data, kind, seed=3)
    chosen = validate_on(usual, "source=explore")
    marks = marks_by_pair(data)
    assert pairs_of(chosen.valid) == [pair for pair in pairs_of(usual.valid) if marks[pair] == "explore"]
    assert assignment(chosen).keys() == set(pairs_of(data))
    assert chosen.test is usual.test
    for part in chosen.parts.values():  # what returned to train brought its values along
        assert marks_by_pair(part) == {pair: marks[pair] for pair in pairs_of(part)}
        assert part.rating is not None
        assert np.allclose(part.rating, data.rating[np.searchsorted(data.keys, part.keys)])  # type: ignore[index]
    candidates, kept = len(pairs_of(usual.valid)), len(pairs_of(chosen.valid))
    assert 0 < kept < candidates
    assert chosen.parameters == {**usual.parameters, "validate_on": "source=explore"}
    assert chosen.notes == {
        **usual.notes,
        "validation_candidates": candidates,
        "validation_returned_to_train": candidates - kept,
    }


def test_validation_carved_from_a_given_train_part() -> None:
    data = marked_log()
    test = data.select(data.items % 7 == 0)
    train = data.select(data.items % 7 != 0)
    chosen = validate_on(given_split({"train": train, "test": test}, seed=5, protocol="honest"), "source=model")
    _, carved = carve_validation(train, seed=5)
    marks = marks_by_pair(data)
    assert pairs_of(chosen.valid) == [pair for pair in pairs_of(carved) if marks[pair] == "model"]
    assert len(chosen.train) + len(pairs_of(chosen.valid)) == len(train)
    assert chosen.test is test


@pytest.mark.parametrize(
    ("marks", "value", "expected"),
    [
        ([0, 1, 2], "1", 1),
        ([0.0, 1.5, np.nan], "1.5", 1.5),
        ([0.0, 1.0, np.nan], "1", 1.0),
        ([True, False], "true", True),
        (np.array(["a=b", None, "c"], dtype=object), "a=b", "a=b"),
    ],
)
def test_marks_of_any_type_are_compared_as_text(marks: Any, value: str, expected: object) -> None:
    chosen = validate_on(split(marked_log(marks)), f"source={value}")
    assert chosen.valid is not None
    assert set(chosen.valid.columns["source"].tolist()) == {expected}


def test_marks_that_do_not_occur() -> None:
    parts = split(marked_log())
    with pytest.raises(
        DataError, match="no interaction has source=explor, values found: 'explore', 'model', 'popular'"
    ):
        validate_on(parts, "source=explor")
    with pytest.raises(DataError, match=r"column 'sauce' was not read with the log \(carried: 'source'\)"):
        validate_on(parts, "sauce=explore")
    with pytest.raises(DataError, match=r"'0', '1', '10', .*, \.\.\.; choose"):
        validate_on(split(marked_log(np.arange(40))), "source=x")
    for text in ("source", "=explore", "source=", ""):
        with pytest.raises(ConfigError, match="write it as COLUMN=VALUE"):
            validate_on(parts, text)
    with pytest.raises(DataError, match="no validation part"):
        validate_on(Split(parts.train, None, parts.test, kind="given"), "source=explore")


def test_marks_in_train_only_or_in_test_only() -> None:
    """The value is looked for where the method is developed; that test has it does not count."""
    data = marked_log()
    usual = split(data)
    assert usual.valid is not None
    assert usual.test is not None

    def marked_at(position: int) -> Split:
        source = np.array(["other"] * len(data), dtype=object)
        source[position] = "rare"
        again = Interactions.build(
            data.users, data.items, user_ids=data.user_ids, item_ids=data.item_ids, columns={"source": source}
        )
        return split(again)

    in_train = int(np.searchsorted(data.keys, usual.train.keys[0]))
    with pytest.raises(DataError, match=r"none of the .* held out for validation has source=rare, while train has 1"):
        validate_on(marked_at(in_train), "source=rare")
    in_test = int(np.searchsorted(data.keys, usual.test.keys[0]))
    with pytest.raises(DataError, match="no interaction has source=rare, values found: 'other'"):
        validate_on(marked_at(in_test), "source=rare")
