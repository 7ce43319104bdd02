"""`run.json` as an object: nothing is lost or added between reading and writing, and its status is always true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from caged.errors import RunError
from caged.runs.folder import Run, RunFolder
from caged.training import Interrupted

WRITTEN: dict[str, Any] = {
    "format": 1,
    "status": "failed",
    "command": "caged train",
    "spec": {"method": "lightgcn", "protocol": "honest", "seed": 1},
    "dataset": {"name": "log", "split_fingerprint": "abc"},
    "versions": {"caged": "1"},
    "hardware": {"device": "cpu"},
    "threads": 2,
    "started": "2024-01-01T00:00:00+00:00",
    "resumed": 0,
    "seconds": {"train": 1.5},
    "data_path": None,
    "record": None,
    "save_weights": True,
    "init": {"run": "other"},
    "training": {"epochs": 3},
    "error": "",
    "ended": "2024-01-01T00:00:01+00:00",
}


def stored(folder: Path, **changes: Any) -> RunFolder:
    (folder / "run.json").write_text(json.dumps({**WRITTEN, **changes}))
    return RunFolder.read(folder)


def test_a_run_is_written_as_it_was_read(tmp_path: Path) -> None:
    said = stored(tmp_path).run.to_json()
    assert said == WRITTEN
    assert list(said) == list(WRITTEN)


def test_what_there_is_nothing_to_say_about_is_left_out() -> None:
    always = dict(list(WRITTEN.items())[:13])
    run = Run(**{key: value for key, value in always.items() if key != "format"})
    assert list(run.to_json()) == list(always)


def test_a_run_whose_method_is_not_there_can_be_read(tmp_path: Path) -> None:
    folder = stored(tmp_path, spec={"method": "theirs"})
    assert folder.run.spec["method"] == "theirs"
    with pytest.raises(RunError, match=r"specification in .* is incomplete"):
        _ = folder.spec


@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        (None, "finished", None),
        (Interrupted(), "interrupted", None),
        (KeyboardInterrupt(), "interrupted", None),
        (RunError("no space"), "failed", "no space"),
        (ValueError("odd"), "failed", "ValueError: odd"),
    ],
)
def test_the_status_is_true_however_a_run_ends(
    tmp_path: Path, end: BaseException | None, status: str, error: str | None
) -> None:
    folder = stored(tmp_path, status="running", error=None, ended=None, seconds={"total": 100.0})
    seen = []

    def work() -> None:
        with folder.kept_true():
            seen.append(RunFolder.read(tmp_path).run.status)
            if end is not None:
                raise end

    if end is None:
        work()
    else:
        with pytest.raises(type(end)):
            work()
    after = RunFolder.read(tmp_path).run
    assert seen == ["running"]
    assert (after.status, after.error) == (status, error)
    assert after.seconds["total"] > 100
    assert after.ended is not None
