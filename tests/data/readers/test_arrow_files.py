"""Logs in Feather and JSON lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pytest

from caged.data.readers import read_log
from caged.errors import DataError

LINES = '{"user_id": "a", "item_id": 1}\n{"user_id": "b", "item_id": 2}\n{"user_id": "a", "item_id": 2}\n'


def test_logs_in_every_form_are_the_same(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(pa.table({"user_id": ["a", "b", "a"], "item_id": [1, 2, 2]}), tmp_path / "l.feather")
    (tmp_path / "l.jsonl").write_text(LINES)
    (tmp_path / "l.jsonl.gz").write_bytes(gzip.compress(LINES.encode()))
    logs = [read_log(tmp_path / name) for name in ("l.feather", "l.jsonl", "l.jsonl.gz")]
    assert {log.fingerprint for log in logs} == {logs[0].fingerprint}
    assert (len(logs[0]), logs[0].user_count) == (3, 2)


@pytest.mark.parametrize("name", ["l.feather", "l.jsonl", "l.jsonl.gz"])
def test_damaged_files_and_missing_columns(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"{")
    with pytest.raises(DataError, match="is not a readable"):
        read_log(tmp_path / name)
    (tmp_path / "other.jsonl").write_text('{"user_id": 1, "thing": 2}\n')
    with pytest.raises(DataError, match="has no column 'item_id', found: 'user_id', 'thing'"):
        read_log(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[{"user_id": 1, "item_id": 2}, {"user_id": 2, "item_id": 2}]', "JSON that is not one object per line"),
        ('["a", 0.5]\n["b", 0.4]\n', "JSON that is not one object per line"),
        ('{"user_id": 1, "items": [["a", 0.5]]}\n', "'items' holds numbers where strings .* columns of their own"),
        ('{"user_id": 1}\n{"user_id": "a"}\n', "column 'user_id' holds strings where numbers are expected; one object"),
    ],
)
def test_json_that_is_no_table_is_not_called_damaged(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "l.json").write_text(content)
    with pytest.raises(DataError, match=words) as told:
        read_log(tmp_path / "l.json")
    assert "to_json(..., orient='records', lines=True)" in str(told.value)
    assert "damaged" not in str(told.value)
