"""A comparison of indexes at a small size: what a record says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.index import EXACT, OURS, main

pytest.importorskip("faiss")


@pytest.fixture(autouse=True)
def one_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would wait for each other where tests run side by side."""
    monkeypatch.setattr("benchmarks.index.BUILDERS", 1)


def test_a_record_has_recall_and_speed_of_each(tmp_path: Path) -> None:
    small = ["--items", "1500", "--people", "20", "--width", "8"]
    main([*small, "--only", "exact;head*;HNSW by p*", "--json", str(tmp_path / "record.json")])
    results = json.loads((tmp_path / "record.json").read_text())["results"]
    assert {one["index"] for one in results} == {EXACT, OURS, "HNSW by product"}
    for one in results:
        assert list(one["recall"]) == ["0.0", "0.25", "0.5", "1.0"]
        assert one["lists_per_s"] > 0
    exact, *_ = results
    assert set(exact["recall"].values()) == {1.0}
    widest = [one for one in results if one["index"] == OURS][-1]
    assert min(widest["recall"].values()) >= 0.97


def test_filters_always_give_as_many_as_asked_for(tmp_path: Path) -> None:
    main(["--items", "1500", "--people", "10", "--width", "8", "--filters", "--json", str(tmp_path / "record.json")])
    results = json.loads((tmp_path / "record.json").read_text())["results"]
    assert {one["shortest"] for one in results if one["kept_percent"] > 1} == {20}
    assert {one["recall"] for one in results if one["kept_percent"] == 1} == {1.0}
