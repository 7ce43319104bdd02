"""Where datasets lie, and which folder is one of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from caged.data import load
from caged.data.known.folder import data_folder
from caged.errors import DataError
from tests.data.known.written import coat_tables, put


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "{base}/caged/data"),
        ("win32", "LOCALAPPDATA", "{base}/caged/data"),
        ("darwin", "HOME", "{base}/Library/Caches/caged/data"),
        ("linux", "HOME", "{base}/.cache/caged/data"),
    ],
)
def test_the_data_folder_without_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, variable: str, expected: str
) -> None:
    for name in ("CAGED_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr(sys, "platform", platform)
    assert data_folder() == Path(expected.format(base=tmp_path))


def test_the_variable_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAGED_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert data_folder() == tmp_path


def test_an_incomplete_folder_says_what_it_lacks(root: Path) -> None:
    put(root / "coat", train__parquet=b"")
    with pytest.raises(
        DataError, match=r"lacks train.parquet and test.parquet or train.ascii and test.ascii; run caged"
    ):
        load("coat")


def test_a_dataset_without_download_is_not_said_to_have_one(root: Path) -> None:
    with pytest.raises(DataError, match=r"fetch it by hand, copy it with caged data get pinterest-caged --from DIR"):
        load("pinterest-caged")


# ---------------------------------------------------------------- folders given as paths


def test_the_path_of_a_dataset_folder_is_the_dataset(tmp_path: Path) -> None:
    source = load(put(tmp_path / "coat", **coat_tables()))
    assert (source.name, source.dropped) == ("coat", {"test": 2})


def test_a_folder_of_the_same_name_with_other_files_is_just_a_folder(tmp_path: Path) -> None:
    table = "user_id\titem_id\na\t1\nb\t2\n"
    source = load(put(tmp_path / "lastfm", train__tsv=table, test__tsv=table.replace("\t1", "\t2")))
    assert source.dataset is None
    assert source.parts is not None
    assert source.parts["train"].user_ids.values.to_pylist() == ["a", "b"]
    columns = pa.table({"user_id": ["a", "b"], "item_id": ["x", "y"]})
    assert load(put(tmp_path / "coat", train__parquet=columns, test__parquet=columns)).dataset is None
