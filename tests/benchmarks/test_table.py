"""The tables of benchmarks/README.md are those of the records."""

from __future__ import annotations

from benchmarks.table import HERE, updated


def test_the_document_is_up_to_date() -> None:
    text = (HERE / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- table: ") == text.count("| benchmark | data |") > 0
    assert updated(text) == text, "run python -m benchmarks.table"
