"""A split as a folder: what is written is read again, all of it or nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from caged.data import (
    Columns,
    Interactions,
    given_split,
    load,
    split,
    split_by_time,
)
from caged.data.splits.folder import write_split
from caged.errors import DataError, RunError
from tests.data.splits.logs import marked_log


@pytest.mark.parametrize(
    "name",
    [
        lambda number: int(number) * 3,
        lambda number: f"{number:03d}",  # text that looks like numbers
        lambda number: f'bücher,\n"{number}" 🛒',
    ],
)
def test_a_folder_gives_back_the_same_split(name: Any, tmp_path: Path) -> None:
    log = marked_log()
    data = Interactions.from_ids(
        [name(user) for user in log.users],
        [name(item) for item in log.items],
        timestamp=log.timestamp,
        rating=log.rating,
        columns={"source": log.columns["source"]},
    )
    made = split_by_time(data)
    manifest = write_split(made, tmp_path / "deep" / "split", origin={"source": "log.csv"})
    read = load(tmp_path / "deep" / "split", columns=Columns(keep=("source",))).parts
    assert read is not None
    again = given_split(read, seed=1, protocol="honest")
    assert again.fingerprint == made.fingerprint == manifest["split_fingerprint"]
    for part, wanted in zip(again.parts.values(), made.parts.values(), strict=True):
        assert part.to_arrow().equals(wanted.to_arrow())
    assert json.loads((tmp_path / "deep" / "split" / "manifest.json").read_text()) == {
        "format": 1,
        "kind": "time",
        "parameters": dict(made.parameters),
        "notes": dict(made.notes),
        "users": data.user_count,
        "items": data.item_count,
        "interactions": {part: len(content) for part, content in made.parts.items()},
        "item_gini": made.item_gini,
        "fingerprints": {part: content.fingerprint for part, content in made.parts.items()},
        "split_fingerprint": made.fingerprint,
        "origin": {"source": "log.csv"},
    }
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        "train.parquet",
        "valid.parquet",
        "test.parquet",
        "manifest.json",
    }


def test_times_below_a_second_come_back(tmp_path: Path) -> None:
    log = marked_log()
    assert log.timestamp is not None
    data = Interactions.from_ids(log.users, log.items, timestamp=log.timestamp * 7, timestamp_unit="ms")
    made = split_by_time(data)
    write_split(made, tmp_path / "split")
    read = load(tmp_path / "split").parts
    assert read is not None
    for name, part in made.parts.items():
        assert read[name].to_arrow().equals(part.to_arrow())


def test_a_failing_disk_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = pq.write_table

    def failing(table: Any, path: Path, **options: Any) -> None:
        if path.name == "test.parquet":
            raise OSError(28, "No space left on device")
        write(table, path, **options)

    monkeypatch.setattr(pq, "write_table", failing)
    with pytest.raises(RunError, match=r"cannot write to output folder .*split: No space left on device"):
        write_split(split(marked_log()), tmp_path / "split")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_not_free(tmp_path: Path) -> None:
    parts = split(marked_log())
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "precious.txt").write_text("mine")
    with pytest.raises(RunError, match="filled is not empty"):
        write_split(parts, tmp_path / "filled")
    with pytest.raises(RunError, match=r"precious.txt is a file"):
        write_split(parts, tmp_path / "filled" / "precious.txt")
    with pytest.raises(RunError, match="cannot write to output folder"):
        write_split(parts, tmp_path / "filled" / "precious.txt" / "below")
    assert [path.name for path in (tmp_path / "filled").iterdir()] == ["precious.txt"]
    (tmp_path / "empty").mkdir()
    write_split(parts, tmp_path / "empty")
    assert (tmp_path / "empty" / "manifest.json").is_file()


def test_a_kept_column_must_not_replace_the_ids(tmp_path: Path) -> None:
    data = Interactions.from_ids([1, 1, 1, 2, 2, 2], [1, 2, 3, 1, 2, 3], columns={"user_id": np.arange(6)})
    with pytest.raises(DataError, match="column 'user_id' cannot be kept"):
        write_split(split(data), tmp_path / "split")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_keeps_what_was_not_liked(tmp_path: Path) -> None:
    made = split(marked_log())
    assert made.test is not None
    shown = np.arange(len(made.test)) % 2 == 0
    made = replace(made, test=made.test.select(shown), test_negative=made.test.select(~shown))
    write_split(made, tmp_path / "split")
    assert (tmp_path / "split" / "test_negative.parquet").is_file()
    read = load(tmp_path / "split").parts
    assert read is not None
    assert list(read) == ["train", "valid", "test", "test_negative"]
    assert given_split(read, seed=1, protocol="honest").fingerprint == made.fingerprint
