"""Out of core, the parts are those that a log in memory is split into."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from caged.data import Columns, read_log, sorted_rows, split_log
from caged.data.cgraph import by_item, filtering, writing
from caged.data.cgraph.dividing import SplitAs
from caged.data.cgraph.layout import verify
from caged.data.cgraph.reading import open_graph
from caged.data.cgraph.writing import import_graph
from caged.data.readers import batches
from caged.data.seen import Seen
from caged.errors import CagedError
from tests.data.cgraph.folders import a_graph, a_log, written

pytest.importorskip("polars")


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that a tiny log needs many tables, buckets and blocks."""
    monkeypatch.setattr(batches, "TABLE_ROWS", 64)
    monkeypatch.setattr(sorted_rows, "BUCKET_BYTES", 600)
    monkeypatch.setattr(filtering, "BLOCK_PAIRS", 17)
    monkeypatch.setattr(by_item, "BLOCK_PAIRS", 23)


def check_equals_memory(log: Path, out: Path, kind: str, min_rating: float | None, core: int | None) -> None:
    asked = SplitAs(kind, seed=3)
    manifest = import_graph([log], out, split=asked, min_rating=min_rating, k_core=core).manifest
    verify(out)
    graph = open_graph(out)
    pairs = read_log(log, min_rating=min_rating, min_user_interactions=core, min_item_interactions=core)
    wanted = split_log(pairs, kind, seed=3)
    for name, part in wanted.parts.items():
        found = graph.parts[name]
        assert (found.user_ids, found.item_ids) == (part.user_ids, part.item_ids)
        np.testing.assert_array_equal(found.users, part.users)
        np.testing.assert_array_equal(found.items, part.items)
        np.testing.assert_array_equal(found.item_degrees, part.item_degrees)
        assert found.fingerprint == part.fingerprint
    assert Seen(graph.parts["train"], graph.parts["valid"]).fingerprint == Seen(wanted.train, wanted.valid).fingerprint
    described = {"kind": kind, "parameters": dict(wanted.parameters), "notes": dict(wanted.notes)}
    assert manifest["split"] == described
    assert manifest["merged_duplicates"] == pairs.merged


@pytest.mark.parametrize("kind", ["random", "time", "leave_last_out"])
@pytest.mark.parametrize(("min_rating", "core"), [(None, None), (3.0, None), (None, 6), (2.0, 4)])
@pytest.mark.usefixtures("small_memory")
def test_equals_the_split_in_memory(tmp_path: Path, kind: str, min_rating: float | None, core: int | None) -> None:
    check_equals_memory(written(a_log(), tmp_path / "log.parquet"), tmp_path / "it.cgraph", kind, min_rating, core)


@pytest.mark.parametrize("kind", ["random", "time"])
def test_equals_it_in_one_block_and_with_text_ids(tmp_path: Path, kind: str) -> None:
    log = written(a_log(text_ids=True), tmp_path / "log.parquet")
    check_equals_memory(log, tmp_path / "it.cgraph", kind, None, None)


def test_times_with_fractions_are_cut_in_their_unit(tmp_path: Path) -> None:
    table = a_log()
    fine = pa.array(table["timestamp"].to_numpy() * 1000 + 1, pa.int64()).cast(pa.timestamp("ms"))
    log = written(table.set_column(3, "timestamp", fine), tmp_path / "log.parquet")
    check_equals_memory(log, tmp_path / "it.cgraph", "time", None, None)


def test_times_may_span_all_integers(tmp_path: Path) -> None:
    """Nanoseconds beside the smallest integer, which stands for no time in some logs."""
    table = a_log()
    times = table["timestamp"].to_numpy() + 1_700_000_000 * 10**9
    times[::17] = -(2**63)
    log = written(table.set_column(3, "timestamp", pa.array(times)), tmp_path / "log.parquet")
    check_equals_memory(log, tmp_path / "it.cgraph", "time", None, None)


@pytest.mark.usefixtures("small_memory")
def test_parts_of_a_log_and_csv_make_the_same_graph(tmp_path: Path) -> None:
    table = a_log()
    for number, start in enumerate(range(0, len(table), 150)):
        csv.write_csv(table.slice(start, 150), tmp_path / f"part-{number}.csv")
    from_parts = import_graph([tmp_path / "part-*.csv"], tmp_path / "parts.cgraph").manifest
    at_once = import_graph([written(table, tmp_path / "log.parquet")], tmp_path / "it.cgraph").manifest
    assert from_parts["fingerprints"] == at_once["fingerprints"]
    assert from_parts["files"] == at_once["files"]
    assert len(from_parts["sources"]) == 4


def test_the_folder_holds_what_the_format_says(tmp_path: Path) -> None:
    folder = a_graph(tmp_path)
    of_parts = {"user_offsets.npy", "items.npy", "item_offsets.npy", "item_users.npy"}
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        "users.arrow",
        "items.arrow",
        "train",
        "valid",
        "test",
    }
    for part in ("train", "valid", "test"):
        assert {path.name for path in (folder / part).iterdir()} == of_parts
    assert np.load(folder / "train" / "items.npy").dtype == np.int32
    assert np.load(folder / "train" / "user_offsets.npy").dtype == np.int64


def test_every_phase_has_its_time(tmp_path: Path) -> None:
    done = import_graph([written(a_log(), tmp_path / "log.parquet")], tmp_path / "it.cgraph", k_core=3)
    assert list(done.seconds) == [
        "reading",
        "numbering",
        "sorting",
        "filtering",
        "splitting",
        "sorting by item",
        "checksums",
    ]
    assert all(spent >= 0 for spent in done.seconds.values())


@pytest.mark.parametrize("broken", ["write_by_item", "checksum", "_divide"])
def test_a_stop_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, broken, stop)
    with pytest.raises(KeyboardInterrupt):
        a_graph(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": Columns(keep=("source",))}, "'source' cannot be kept"),
        ({"min_rating": 9.0}, "has no rating of at least 9 (the largest is 5)"),
        ({"k_core": 90}, "no users with 90 and items with 90"),
        ({"split": SplitAs("time", test_share=0.95, valid_share=0.1)}, "leave nothing"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(CagedError) as error:
        a_graph(tmp_path, **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_a_log_without_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    log = written(a_log().select(["user_id", "item_id"]), tmp_path / "log.parquet")
    with pytest.raises(CagedError, match="no rating column 'rating'"):
        import_graph([log], tmp_path / "it.cgraph", min_rating=2.0)
    with pytest.raises(CagedError, match="split 'time' needs timestamps"):
        import_graph([log], tmp_path / "it.cgraph", split=SplitAs("time"))
    import_graph([log], tmp_path / "it.cgraph")


def test_the_name_says_what_it_is(tmp_path: Path) -> None:
    log = written(a_log(), tmp_path / "log.parquet")
    with pytest.raises(CagedError, match=r"ends in \.cgraph"):
        import_graph([log], tmp_path / "graph")


def test_the_manifest_is_what_is_returned(tmp_path: Path) -> None:
    done = import_graph([written(a_log(), tmp_path / "log.parquet")], tmp_path / "it.cgraph")
    assert json.loads((tmp_path / "it.cgraph" / "manifest.json").read_text()) == done.manifest
