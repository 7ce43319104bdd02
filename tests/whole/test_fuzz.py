"""A thousand files that nobody wrote by hand: every one is read, or refused in one sentence, and leaves nothing behind.

The counts are printed; pytest shows them with `-s` or `-rP`.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from hypothesis import HealthCheck, given, seed, settings

from caged.cli import main
from caged.data import Interactions, read_log
from caged.data.readers.canonical import read_canonical
from caged.errors import CagedError
from tests.cli.invoke import caged
from tests.data.generated_files import FORMATS

pytest.importorskip("polars")

FILES_PER_FORMAT = 120  # times ten formats
TRAINED = 8  # accepted and as many refused files of each format go through `caged train` as well, which takes longer

fuzzing = settings(
    max_examples=FILES_PER_FORMAT,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def outcome_of(read: Callable[[], Interactions]) -> Interactions | CagedError:
    """Anything but success and a `CagedError` ends the test."""
    try:
        return read()
    except CagedError as error:
        message = str(error)
        assert "\n" not in message.replace("\\n", "").strip()
        assert len(message) < 1500
        return error


def cli_refused(folder: Path, *arguments: str | Path) -> bool:
    """Whether the command refused its input: with exit code 2 and one error line, nothing else."""
    done = caged(*arguments, cwd=folder)
    assert done.code in (0, 2), done
    assert "Traceback" not in done.err
    if done.code == 2:
        assert done.error
        assert done.out == ""
    return done.code == 2


def listed(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("suffix", FORMATS)
def test_any_file_is_read_or_refused(
    suffix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # a thousand folders need not survive a power cut
    monkeypatch.setattr(main, "app", typer.main.get_command(main.app))  # typer would build it anew for every call
    path, out = tmp_path / f"log{suffix}", tmp_path / "out"
    counts: Counter[str] = Counter()

    @seed(zlib.crc32(suffix.encode()))  # the same files in every run, and others for every format
    @fuzzing
    @given(FORMATS[suffix])
    def check(content: bytes) -> None:
        path.write_bytes(content)
        log = outcome_of(lambda: read_log(path))
        refused = cli_refused(tmp_path, "data", "import", path, "-o", out)
        counts.update(["files", "refused" if refused else "accepted"])
        # Both ways to read agree on what a log is, and on what is in it.
        assert refused == isinstance(log, CagedError), log
        if isinstance(log, Interactions):
            imported = read_canonical(out)
            assert imported.to_arrow().equals(log.to_arrow())
            assert imported.merged == log.merged
            shutil.rmtree(out)
        if (counts["refused"] if refused else counts["trained"] + 1) <= TRAINED:
            counts["trained"] += not cli_refused(
                tmp_path, "train", "--data", path, "--method", "mostpop", "--set", "eval.k=1", "--out", out
            )
            shutil.rmtree(out, ignore_errors=True)
        assert listed(tmp_path) == {path.name}
        assert path.read_bytes() == content

    check()
    print(f"fuzzed {suffix}: {dict(sorted(counts.items()))}")
    for name, count in counts.items():
        record_property(f"{suffix} {name}", count)
    assert counts["files"] >= FILES_PER_FORMAT
    assert counts["accepted"] >= 10
    assert counts["refused"] >= 10
    assert counts["trained"] >= 1


def test_there_are_a_thousand_files() -> None:
    assert len(FORMATS) * FILES_PER_FORMAT >= 1000
