"""Logs in folders of part files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caged.data.readers.columns import Columns
from caged.data.readers.folders import part_files, read_part_files
from caged.errors import DataError


def test_the_parts_of_a_log_are_one_log(tmp_path: Path) -> None:
    for number in range(3):
        table = pa.table({"user_id": [number, number + 1], "item_id": [1, number]})
        pq.write_table(table, tmp_path / f"part-{number:05}.snappy.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "half.parquet").write_bytes(b"half")
    assert len(part_files(tmp_path)) == 3
    log = read_part_files(tmp_path, columns=Columns())
    assert (len(log), log.user_count, log.merged) == (5, 4, 1)


def test_ids_are_integers_only_where_all_parts_have_integers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user_id,item_id\n1,7\n")
    (tmp_path / "b.csv").write_text("user_id,item_id\nx,8\n")
    log = read_part_files(tmp_path, columns=Columns())
    assert log.user_ids.values.to_pylist() == ["1", "x"]
    assert log.item_ids.are_integers


def test_what_is_no_folder_of_part_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no files"):
        part_files(tmp_path)
    (tmp_path / "a.csv").write_text("user_id,item_id\n1,7\n")
    (tmp_path / "b.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"is not a folder of part files, found: a\.csv, b\.parquet"):
        part_files(tmp_path)
    (tmp_path / "b.parquet").unlink()
    (tmp_path / "b.csv").write_text("user_id,item_id\n1,\n")
    with pytest.raises(DataError, match=f"{tmp_path}: column 'item_id' is empty"):
        read_part_files(tmp_path, columns=Columns())
