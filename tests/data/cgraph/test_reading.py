"""Opening a graph reads offsets and identifiers, and notices a folder that is not whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from caged.data import Columns, load
from caged.data.cgraph.pairs import check_rows
from caged.data.cgraph.reading import open_graph
from caged.errors import DataError
from caged.runs.execute import start
from caged.runs.spec import resolve
from tests.data.cgraph.folders import a_graph

pytest.importorskip("polars")


def test_opening_maps_the_pairs(tmp_path: Path) -> None:
    train = open_graph(a_graph(tmp_path)).parts["train"]
    offsets, items = train.by_user()
    assert isinstance(items.base, np.memmap)
    assert items.dtype == np.int32
    assert len(train) == offsets[-1] == len(items)
    assert not {"users", "items"} & vars(train).keys()


def test_the_first_look_at_the_pairs_is_a_check(tmp_path: Path) -> None:
    part = open_graph(a_graph(tmp_path)).parts["train"]
    assert not {"item_rows", "item_order"} & vars(part).keys()
    part.check()
    assert {"item_rows", "item_order"} <= vars(part).keys()


def test_load_gives_the_parts(tmp_path: Path) -> None:
    source = load(a_graph(tmp_path))
    assert source.name == "it"
    assert source.log is None
    assert source.parts is not None
    assert list(source.parts) == ["train", "valid", "test"]


GONE = object()


def changed(name: str, value: object) -> Callable[[Path], None]:
    """One value of the manifest; a name with dots leads to it."""

    def change(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        *way, last = name.split(".") if "/" not in name else ["files", *name.rsplit(".", 1)]
        within = manifest
        for step in way:
            within = within[step]
        if value is GONE:
            del within[last]
        else:
            within[last] = value
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return change


def flipped(name: str, place: int, bit: int = 1) -> Callable[[Path], None]:
    """One bit; a place from the end."""

    def change(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[-place] ^= bit
        (folder / name).write_bytes(content)

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
        (other_offsets, "user_offsets.npy is damaged"),
        (flipped("users.arrow", 400), "users.arrow is damaged"),
        (flipped("valid/item_offsets.npy", 9), "item_offsets.npy is damaged"),
        (changed("users", "300"), "says that users is '300', which no import writes"),
        (changed("users", True), "says that users is True"),
        (changed("merged_duplicates", None), "says that merged_duplicates is None"),
        (changed("interactions", 5), "says that interactions is 5"),
        (changed("interactions.train", "3"), "says that interactions.train is '3'"),
        (changed("interactions.test", GONE), "lacks interactions.test"),
        (changed("fingerprints", {}), "lacks fingerprints.train"),
        (changed("fingerprints.train", 3), "says that fingerprints.train is 3"),
        (changed("notes", [None]), "says that notes is a list"),
        (changed("files", {}), "lacks files.users.arrow"),
        (changed("files", []), "says that files is a list"),
        (changed("train/items.npy.sha256", GONE), "lacks files.train/items.npy.sha256"),
        (changed("train/items.npy.bytes", "x"), "says that files.train/items.npy.bytes is 'x'"),
        (lambda folder: (folder / "manifest.json").unlink(), "manifest.json does not exist"),
        (lambda folder: (folder / "manifest.json").write_text("[" * 100_000), "is not readable JSON"),
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


@pytest.mark.parametrize("name", ["items.npy", "item_users.npy"])
@pytest.mark.parametrize("part", ["train", "valid", "test"])
@pytest.mark.parametrize("bit", [1, 0x40])
def test_any_flipped_bit_of_the_pairs_is_found_before_they_are_used(
    tmp_path: Path, part: str, name: str, bit: int
) -> None:
    folder = a_graph(tmp_path)
    flipped(f"{part}/{name}", 4 * 7 + 4, bit)(folder)
    damaged = open_graph(folder).parts[part]
    with pytest.raises(DataError, match=rf"{part}/{name} is damaged"):
        damaged.check()


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_rows_are_checked_across_blocks(block: int) -> None:
    place = Path("items.npy")
    offsets, rows = np.array([0, 2, 2, 5, 6]), np.array([0, 2, 0, 1, 2, 2], dtype=np.int32)
    degrees = np.array([2, 1, 3])

    def refused(rows: list[int]) -> bool:
        try:
            check_rows(place, np.array(rows, dtype=np.int32), offsets, degrees, block)
        except DataError:
            return True
        return False

    assert not refused([*rows])
    assert refused([2, 0, 0, 1, 2, 2])  # falls
    assert refused([0, 2, 1, 1, 2, 2])  # twice
    assert refused([0, 2, 0, 1, 2, 3])  # unknown
    assert refused([0, 2, -1, 1, 2, 2])
    assert refused([0, 2, 0, 1, 2, 1])  # more often than it should


def test_training_on_a_damaged_graph_leaves_nothing(tmp_path: Path) -> None:
    folder = a_graph(tmp_path)
    flipped("test/items.npy", 32, 0x40)(folder)
    with pytest.raises(DataError, match=r"test/items\.npy is damaged"):
        start(resolve(str(folder), "lightgcn"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
