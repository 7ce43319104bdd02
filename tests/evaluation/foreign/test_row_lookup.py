"""Row numbers of identifiers in batches: always what a dictionary of all identifiers would say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caged.data.ids import IdMap
from caged.errors import DataError
from caged.evaluation.foreign import text_rows
from caged.evaluation.foreign.row_lookup import RowLookup
from caged.evaluation.foreign.text_rows import TextRows, fingerprints

# Few letters, so that texts share beginnings and occur again; lengths on both sides of a word and of two.
TEXT = st.one_of(st.text("ab", max_size=3), st.text("aé€\0", min_size=5, max_size=20), st.text("a", max_size=40))
BATCHES = st.lists(st.lists(TEXT, max_size=30), max_size=4)


def texts(values: list[str]) -> pa.Array:
    return pa.array(values, pa.large_string())


def known_texts(values: list[str]) -> IdMap:
    return IdMap.of(texts(values))


def check_lookup(known: list[str], batches: list[list[str]]) -> None:
    lookup = RowLookup(known_texts(known))
    expected = {value: row for row, value in enumerate(sorted(set(known), key=str.encode))}
    for batch in batches:
        codes = lookup.codes(texts(batch))
        for value in batch:
            expected.setdefault(value, len(expected))
        assert codes.dtype == np.int32
        assert codes.tolist() == [expected[value] for value in batch]
    assert lookup.unknown.to_pylist() == list(expected)[len(set(known)) :]


@given(st.lists(TEXT, max_size=30), BATCHES)
@example([], [[], ["a"], []])
@example([""], [[], ["", "a"], [""]])
def test_texts_get_the_codes_of_a_dictionary(known: list[str], batches: list[list[str]]) -> None:
    check_lookup(known, [*batches, known])


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_texts_with_the_same_fingerprint_are_told_apart(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    monkeypatch.setattr(text_rows, "fingerprints", lambda of: fingerprints(of) & np.uint64(2**bits - 1))
    known = [f"k{number}" for number in range(50)]
    check_lookup(known, [["k7", "z1", "k49"], known[::-1], ["z2", "k0", "z1"]])


def test_many_texts_in_blocks_and_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_rows, "BLOCK", 7)
    known = known_texts([f"user-{number * number}" for number in range(100)])
    asked = texts([f"user-{number}" for number in range(300)]).slice(3, 290)
    assert TextRows(known).rows(asked).tolist() == known.rows(asked).tolist()


@pytest.mark.parametrize("layout", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_any_layout_of_text(layout: pa.DataType) -> None:
    asked = pa.array(["b", "x", "a"], pa.string()).cast(layout)
    assert TextRows(known_texts(["a", "b"])).rows(asked).tolist() == [1, -1, 0]


def test_fingerprints_tell_length_and_every_byte() -> None:
    different = ["", "\0", "\0\0", "a" * 8, "a" * 8 + "\0", "a" * 9, "b" + "a" * 8, "a" * 8 + "b", "a" * 16, "a" * 17]
    assert len(set(fingerprints(texts(different)).tolist())) == len(different)
    assert fingerprints(texts(different[::-1])).tolist() == fingerprints(texts(different)).tolist()[::-1]


@pytest.mark.parametrize("ids", [pa.array(["a", None, None], pa.large_string()), pa.array([1, None, None])])
def test_missing_identifiers_are_errors(ids: pa.Array) -> None:
    lookup = RowLookup(IdMap.of(ids.drop_null()))
    with pytest.raises(DataError, match="2 identifiers are missing"):
        lookup.codes(ids)


def test_the_fingerprints_of_what_is_known_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(of: pa.Array) -> np.ndarray:
        sizes.append(len(of))
        return fingerprints(of)

    monkeypatch.setattr(text_rows, "fingerprints", counted)
    check_lookup(["a", "b", "c", "d", "e"], [["a", "a", "b"], ["c", "c", "c"]])
    assert sizes == [5, 2, 1]  # and of a batch only what is distinct
