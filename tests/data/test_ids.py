"""Identifiers: the row-order rule and both directions of the map."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caged.data import IdMap
from caged.data.ids import Arrivals
from caged.errors import DataError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))  # everything UTF-8 can encode


@given(st.lists(INT64, min_size=1))
def test_integers_are_ordered_numerically(ids: list[int]) -> None:
    assert IdMap.of(ids).values.to_pylist() == sorted(set(ids))


@given(st.lists(TEXT, min_size=1))
def test_text_is_ordered_by_utf8_bytes(ids: list[str]) -> None:
    assert IdMap.of(ids).values.to_pylist() == sorted(set(ids), key=lambda text: text.encode("utf-8"))


@given(st.one_of(st.lists(INT64, min_size=1), st.lists(TEXT, min_size=1)), st.randoms())
def test_rows_round_trip_and_ignore_order(ids: list[int] | list[str], random: object) -> None:
    id_map = IdMap.of(ids)
    assert id_map.external(id_map.rows(ids)).to_pylist() == ids
    shuffled = list(ids)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert IdMap.of(shuffled + shuffled) == id_map


@given(st.one_of(st.lists(INT64), st.lists(TEXT)))
def test_numbering_equals_a_map_and_its_rows(ids: list[int] | list[str]) -> None:
    id_map, rows = IdMap.numbered(ids)
    assert id_map == IdMap.of(ids)
    assert rows.tolist() == id_map.rows(ids).tolist()
    assert rows.dtype == np.int64


def test_utf8_order_differs_from_utf16_order() -> None:
    """U+FFFF sorts before U+1F600 by UTF-8 bytes, after it in UTF-16 code units."""
    assert IdMap.of(["\U0001f600", "\uffff", "z"]).values.to_pylist() == ["z", "\uffff", "\U0001f600"]


def test_integers_and_integer_texts_are_ordered_differently() -> None:
    assert IdMap.of([10, 9]).values.to_pylist() == [9, 10]
    assert IdMap.of(["10", "9"]).values.to_pylist() == ["10", "9"]


def test_unknown_identifiers_have_row_minus_one() -> None:
    assert IdMap.of([5, 7]).rows([7, 6, -1]).tolist() == [1, -1, -1]
    assert IdMap.of(["a"]).rows(["b", "a"]).tolist() == [-1, 0]
    assert IdMap.range(3).rows([0, 2, 3, -1]).tolist() == [0, 2, -1, -1]


def test_texts_find_integers_only_if_written_canonically() -> None:
    id_map = IdMap.of([0, 7, -3, 2**63 - 1])
    asked = ["7", "007", "+7", " 7", "x", "", "0", "-0", "-3", str(2**63 - 1), str(2**63), "9" * 40]
    expected = {"7": 7, "0": 0, "-3": -3, str(2**63 - 1): 2**63 - 1}
    rows = id_map.rows(asked)
    found = {
        text: id_map.external(np.array([row]))[0].as_py() for text, row in zip(asked, rows, strict=True) if row >= 0
    }
    assert found == expected


def test_integers_find_texts() -> None:
    assert IdMap.of(["7", "007"]).rows([7, 8]).tolist() == [1, -1]


def test_union_keeps_integers_unless_text_is_among_them() -> None:
    integers, more, texts = IdMap.of([10, 9]), IdMap.of([9, 11]), IdMap.of(["x"])
    assert IdMap.union([integers, more]).values.to_pylist() == [9, 10, 11]
    assert IdMap.union([integers, texts]).values.to_pylist() == ["10", "9", "x"]


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series(["b", "a"]),
        pd.Categorical(["b", "a"]),
        pl.Series(["b", "a"]).to_arrow(),
        pa.chunked_array([["b"], ["a"]]),
        pa.array(["b", "a"]).dictionary_encode(),
        pa.array(["b", "a"], type=pa.string_view()),
        np.array(["b", "a"], dtype=object),
        (text for text in "ba"),
    ],
)
def test_any_layout_of_text_is_accepted(ids: object) -> None:
    assert IdMap.of(ids).values.to_pylist() == ["a", "b"]


def test_an_empty_map_is_possible() -> None:
    assert len(IdMap.of([])) == 0
    assert IdMap.of([]).rows([1]).tolist() == [-1]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, "a"], "all integers"),
        ([1.5], "double"),
        ([True], "bool"),
        ([1, None], "1 identifiers are missing"),
        ([2**63], "2\\*\\*63"),
        (pa.array([2**63], type=pa.uint64()), "2\\*\\*63"),
        (["\ud800"], "surrogates"),
    ],
)
def test_bad_identifiers_are_errors(ids: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        IdMap.of(ids)


@pytest.mark.parametrize("gaps", [1, 3, 10**9])
def test_arrivals_are_numbered_in_order_of_appearance(gaps: int) -> None:
    """Also where the gaps grow too large for a table in between, and where a batch is empty."""
    generator = np.random.default_rng(gaps)
    batches = [generator.integers(0, most, 50) for most in (20, 0, 60, 60, 500) if most]
    batches = [batches[0], batches[1][:0], batches[1] * gaps, batches[2], batches[3]]
    came, seen = Arrivals(pa.int64()), dict[int, int]()
    for batch in batches:
        wanted = [seen.setdefault(value, len(seen)) for value in batch.tolist()]
        numbers = came.numbers(pa.array(batch))
        assert numbers.tolist() == wanted
        assert numbers.dtype == np.int32
    assert came.values.to_pylist() == list(seen)


def test_negative_arrivals_are_numbered_too() -> None:
    came = Arrivals(pa.int64())
    assert came.numbers(pa.array([5, 3])).tolist() == [0, 1]
    assert came.numbers(pa.array([-2, 5])).tolist() == [2, 0]
    assert came.numbers(pa.array([3, 9])).tolist() == [1, 3]
