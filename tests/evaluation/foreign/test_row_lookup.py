"""Row numbers of identifiers in batches: always what a dictionary of all identifiers would say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caged.data import ids as ids_module
from caged.data import text_rows
from caged.data.ids import IdMap
from caged.data.text_rows import fingerprints
from caged.errors import DataError
from caged.evaluation.foreign.row_lookup import RowLookup

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
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ids_module, "FINGERPRINTS_FROM", 0)  # however much is looked up
        check_lookup(known, [*batches, known])


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_texts_with_the_same_fingerprint_are_told_apart(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    monkeypatch.setattr(ids_module, "FINGERPRINTS_FROM", 0)
    monkeypatch.setattr(text_rows, "fingerprints", lambda of: fingerprints(of) & np.uint64(2**bits - 1))
    known = [f"k{number}" for number in range(50)]
    check_lookup(known, [["k7", "z1", "k49"], known[::-1], ["z2", "k0", "z1"]])


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
    check_lookup(list("abcdefghi"), [["a", "a", "b"], ["c", "c", "c"]])
    assert sizes == [9, 2, 1]  # and of a batch only what is distinct
