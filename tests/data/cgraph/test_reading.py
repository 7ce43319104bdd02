"""Opening a graph reads offsets and identifiers, and notices a folder that is not whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from caged.data import Columns, load
from caged.data.cgraph.reading import open_graph
from caged.errors import DataError
from tests.data.cgraph.folders import a_graph

pytest.importorskip("polars")


def test_opening_maps_the_pairs(tmp_path: Path) -> None:
    train = open_graph(a_graph(tmp_path)).parts["train"]
    offsets, items = train.by_user()
    assert isinstance(items.base, np.memmap)
    assert items.dtype == np.int32
    assert len(train) == offsets[-1] == len(items)
    assert not {"users", "items"} & vars(train).keys()


def test_load_gives_the_parts(tmp_path: Path) -> None:
    source = load(a_graph(tmp_path))
    assert source.name == "it"
    assert source.log is None
    assert source.parts is not None
    assert list(source.parts) == ["train", "valid", "test"]


def changed(name: str, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest[name] = value
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return change


def truncated(folder: Path) -> None:
    path = folder / "train" / "items.npy"
    path.write_bytes(path.read_bytes()[:-4])


def without_a_file(folder: Path) -> None:
    (folder / "test" / "item_users.npy").unlink()


def other_offsets(folder: Path) -> None:
    path = folder / "train" / "user_offsets.npy"
    offsets = np.load(path)
    offsets[1:-1] = offsets[1:-1][::-1]
    np.save(path, offsets)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (changed("version", 2), "has version 2 of the graph format"),
        (changed("format", "x"), "is not the manifest of a graph"),
        (changed("users", 3), "its manifest says 3"),
        (truncated, "bytes, not"),
        (without_a_file, "is missing"),
        (other_offsets, "does not hold the offsets"),
    ],
)
def test_a_damaged_folder_is_one_sentence(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    folder = a_graph(tmp_path)
    damage(folder)
    with pytest.raises(DataError) as error:
        load(folder)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_the_import_decided_cannot_be_chosen_again(tmp_path: Path) -> None:
    folder = a_graph(tmp_path)
    for options in ({"min_rating": 3.0}, {"columns": Columns(user="reader")}, {"columns": Columns(ids="text")}):
        with pytest.raises(DataError, match="give them to caged data import"):
            load(folder, **options)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="largest id"):
        load(folder, catalogue="max_id")
