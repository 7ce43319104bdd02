"""The record on disk: what a killed process leaves behind, and what was changed by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from caged.errors import RunError
from caged.products.tune.journal import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "journal.jsonl")
    made.write("begin", settings={"trials": 2}, data={"train": "x"})
    made.write("start", method="ease", trial=0, values={"method.ridge": 1.0})
    made.write(
        "end",
        method="ease",
        trial=0,
        status="complete",
        metrics={"recall@20": 0.5, "f": float("nan")},
        epochs=3,
        best_epoch=1,
        seconds=0.1,
    )
    made.write("start", method="ease", trial=1, values={"method.ridge": 2.0})
    return made


def test_what_is_written_is_read(journal: Journal) -> None:
    read = Journal.read(journal.path.parent)
    assert (read.settings, read.data, read.trials) == (journal.settings, journal.data, journal.trials)
    assert read.trials["ease", 0].metrics == {"recall@20": 0.5, "f": None}
    assert read.trials["ease", 1].status == "running"


def test_a_line_is_on_the_disk_before_it_counts(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[bytes, str]] = []

    def look(descriptor: int) -> None:
        assert os.path.samestat(os.fstat(descriptor), journal.path.stat())
        synced.append((journal.path.read_bytes(), journal.trials["ease", 1].status))

    monkeypatch.setattr(os, "fsync", look)
    journal.write("lost", method="ease", trial=1, why="killed")
    assert synced == [(journal.path.read_bytes(), "running")]
    assert journal.trials["ease", 1].status == "queued"


def test_a_running_trial_is_queued_again_with_its_values(journal: Journal) -> None:
    read = Journal.read(journal.path.parent)
    read.go_on()
    lost = Journal.read(journal.path.parent).trials["ease", 1]
    assert (lost.status, lost.values, lost.kills) == ("queued", {"method.ridge": 2.0}, 1)


@pytest.mark.parametrize("kept", [1, 30, -1])
def test_a_torn_end_is_cut_off(journal: Journal, kept: int) -> None:
    whole = journal.path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    journal.path.write_bytes(whole[:last] + whole[last:][:kept])
    read = Journal.read(journal.path.parent)
    assert ("ease", 1) not in read.trials
    read.go_on()
    read.write("start", method="ease", trial=1, values={"method.ridge": 2.0})
    assert journal.path.read_bytes() == whole


def test_a_changed_line_is_noticed(journal: Journal) -> None:
    journal.path.write_text(journal.path.read_text().replace('"recall@20": 0.5', '"recall@20": 0.6'))
    with pytest.raises(RunError, match=r"line 3 of .* lacks its checksum"):
        Journal.read(journal.path.parent)


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"holds no journal.jsonl"):
        Journal.read(tmp_path)
