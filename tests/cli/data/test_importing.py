"""`caged data import`: what it prints, what it refuses."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from caged.cli.progress import ScreenLine
from caged.data import read_log, split_log
from tests.cli.invoke import caged, contents

pytest.importorskip("polars")


def test_a_log_is_imported_and_counted(log_csv: Path, tmp_path: Path) -> None:
    done = caged("data", "import", log_csv, "-o", tmp_path / "imported")
    assert done.code == 0
    log = read_log(log_csv)
    assert [line.split()[-1] for line in done.out.splitlines()[1:]] == [f"{len(log)}", "60", "40", "0"]
    assert "caged train --data" in done.err
    assert read_log(tmp_path / "imported").fingerprint == log.fingerprint


def test_json_is_the_manifest(log_csv: Path, tmp_path: Path) -> None:
    done = caged("data", "import", log_csv, "-o", tmp_path / "imported", "--json")
    reported = json.loads(done.out)
    assert reported.pop("folder") == str(tmp_path / "imported")
    assert reported == json.loads((tmp_path / "imported" / "manifest.json").read_text())
    assert reported["fingerprint"] == read_log(log_csv).fingerprint


def test_columns_are_named_and_kept_and_wildcards_expanded(tmp_path: Path) -> None:
    (tmp_path / "day-1.csv").write_text("when,reader,book,stars,source\n5,ann,x,3,policy\n6,bob,y,5,explore\n")
    (tmp_path / "day-2.csv").write_text("when,reader,book,stars,source\n7,ann,x,4,explore\n")
    options = ["--user-column=reader", "--item-column=book", "--rating-column=stars", "--timestamp-column=when"]
    done = caged("data", "import", "day-*.csv", "-o", "out", *options, "--keep", "source", cwd=tmp_path)
    assert done.code == 0, done.err
    from caged.data.readers.canonical import read_canonical

    assert read_canonical(tmp_path / "out").to_arrow().to_pylist() == [
        {"user_id": "ann", "item_id": "x", "rating": 4.0, "timestamp": 7, "source": "explore"},
        {"user_id": "bob", "item_id": "y", "rating": 5.0, "timestamp": 6, "source": "explore"},
    ]


@pytest.mark.parametrize("name", ["stopped", "stopped.cgraph"])
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_whoever_is_stopped_leaves_nothing(
    log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, which: signal.Signals
) -> None:
    before = contents(tmp_path)

    class Impatient(ScreenLine):
        def __call__(self, what: str, share: float | None, /) -> None:
            signal.raise_signal(which)

    monkeypatch.setattr("caged.cli.data.importing.progress_line", lambda quiet: Impatient())
    done = caged("data", "import", log_csv, "-o", tmp_path / name)
    assert done.code == 130
    assert "stopping after this block" in done.err
    assert "Traceback" not in done.err
    assert contents(tmp_path) == before


def test_what_is_refused_leaves_nothing(log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.csv").write_text("user_id,item_id\n1,2\n3\n")
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "file").touch()
    before = contents(tmp_path)
    cases: list[tuple[list[str | Path], str]] = [
        (["bad.csv", "-o", "out"], "line 3: 1 fields, expected 2"),
        (["none.csv", "-o", "out"], "does not exist"),
        ([log_csv, "-o", "filled"], "not empty"),
        ([log_csv, "-o", "bad.csv"], "is a file"),
        ([log_csv, "-o", "out", "--keep", "source"], "name one of these with --keep"),
        ([log_csv, "-o", "out", "--rating-column", "rating"], "no column 'rating'"),
        ([log_csv], "--out"),
        (["-o", "out"], "LOG"),
    ]
    for arguments, words in cases:
        done = caged("data", "import", *arguments, cwd=tmp_path)
        assert done.code == 2
        assert words in done.error
        assert contents(tmp_path) == before
    monkeypatch.setitem(sys.modules, "polars", None)
    done = caged("data", "import", log_csv, "-o", "out", cwd=tmp_path)
    assert done.code == 2
    assert "pip install 'caged-rec[data]'" in done.error


def test_a_name_in_cgraph_makes_a_graph_that_is_split(log_csv: Path, tmp_path: Path) -> None:
    done = caged("data", "import", log_csv, "-o", tmp_path / "it.cgraph", "--seed", "4", "--k-core", "2")
    assert done.code == 0, done.err
    counts = dict(line.rsplit(maxsplit=1) for line in done.out.splitlines()[1:])
    parts = split_log(read_log(log_csv, min_user_interactions=2, min_item_interactions=2), "random", seed=4).parts
    for name, part in parts.items():
        assert counts[f"in {name}"] == f"{len(part):,}"
    described = json.loads(caged("data", "info", tmp_path / "it.cgraph", "--json").out)
    assert {name: part["fingerprint"] for name, part in described["parts"].items()} == {
        name: part.fingerprint for name, part in parts.items()
    }


def test_json_of_a_graph_has_the_time_of_every_phase(log_csv: Path, tmp_path: Path) -> None:
    reported = json.loads(caged("data", "import", log_csv, "-o", tmp_path / "it.cgraph", "--json").out)
    assert {"reading", "splitting", "sorting by item"} <= reported["seconds"].keys()
    assert reported["interactions"].keys() == {"train", "valid", "test"}


def test_a_log_is_neither_split_nor_filtered(log_csv: Path, tmp_path: Path) -> None:
    for option in ("--split=time", "--seed=1", "--test-share=0.1", "--min-rating=2", "--k-core=2"):
        done = caged("data", "import", log_csv, "-o", tmp_path / "imported", option)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert f"{option.partition('=')[0]} works only where a graph is written" in done.err
    assert not (tmp_path / "imported").exists()


def test_a_damaged_graph_is_told_by_info(log_csv: Path, tmp_path: Path) -> None:
    assert caged("data", "import", log_csv, "-o", tmp_path / "it.cgraph").code == 0
    path = tmp_path / "it.cgraph" / "train" / "items.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = caged("data", "info", tmp_path / "it.cgraph")
    assert done.code == 2
    assert "no longer has its checksum" in done.err
