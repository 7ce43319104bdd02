"""Checksums notice what sizes do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.data.cgraph.layout import is_graph_folder, verify
from caged.errors import DataError
from tests.data.cgraph.folders import a_graph

pytest.importorskip("polars")


def test_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    folder = a_graph(tmp_path)
    verify(folder)
    path = folder / "valid" / "items.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"valid/items\.npy is damaged"):
        verify(folder)


def test_other_folders_are_no_graphs(tmp_path: Path) -> None:
    assert not is_graph_folder(tmp_path)
    assert not is_graph_folder(tmp_path / "absent")
    assert is_graph_folder(a_graph(tmp_path))
