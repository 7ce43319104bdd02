"""Texts found by fingerprint: always where a search through all of them would find them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from caged.data import text_rows
from caged.data.ids import IdMap
from caged.data.text_rows import TextRows, fingerprints, hashed_rows


def texts(values: list[str]) -> pa.Array:
    return pa.array(values, pa.large_string())


def test_many_texts_in_blocks_and_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_rows, "BLOCK", 7)
    known = texts([f"user-{number * number}" for number in range(100)])
    asked = texts([f"user-{number}" for number in range(300)]).slice(3, 290)
    assert TextRows(known).rows(asked).tolist() == hashed_rows(asked, known).tolist()


@pytest.mark.parametrize("layout", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("known", [["a", "b"], list("abcdefghijklmnop")], ids=["hashed", "by fingerprint"])
def test_any_layout_of_text(layout: pa.DataType, known: list[str]) -> None:
    asked = pa.array(["b", "x", "a"], pa.string()).cast(layout)
    assert IdMap.of(known).rows(asked).tolist() == [1, -1, 0]


def test_fingerprints_tell_length_and_every_byte() -> None:
    different = ["", "\0", "\0\0", "a" * 8, "a" * 8 + "\0", "a" * 9, "b" + "a" * 8, "a" * 8 + "b", "a" * 16, "a" * 17]
    assert len(set(fingerprints(texts(different)).tolist())) == len(different)
    assert fingerprints(texts(different[::-1])).tolist() == fingerprints(texts(different)).tolist()[::-1]
