"""The command line, called in this process or in one of its own, and what it left behind."""

from __future__ import annotations

import contextlib
import io
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from caged.cli.main import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one error sentence; anything but one is a failure."""
        lines = [line for line in self.err.splitlines() if line.startswith("error:")]
        assert len(lines) == 1, self.err
        return lines[0]


def caged(*arguments: str | Path, cwd: Path | None = None) -> Outcome:
    """Run `caged ARGUMENTS` in this process."""
    return called(main, "caged", *arguments, cwd=cwd)


def called(entry: Callable[[], None], name: str, *arguments: str | Path, cwd: Path | None = None) -> Outcome:
    """Run the command line behind `entry` in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", [name, *map(str, arguments)]))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        if cwd is not None:
            stack.enter_context(contextlib.chdir(cwd))
        try:
            entry()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        finally:
            logging.getLogger("caged").setLevel(logging.NOTSET)  # what -v changed
    return Outcome(code, out.getvalue(), err.getvalue())


def train(data: str | Path, out: Path, *arguments: str | Path, method: str = "lightgcn") -> Outcome:
    """A tiny `caged train` that has to succeed."""
    outcome = caged("train", "--data", data, "--method", method, "--out", out, *tiny(method), *arguments)
    assert outcome.code == 0, outcome.err
    return outcome


def tiny(method: str) -> tuple[str, ...]:
    """Options that make training take no time; one thread, so that results are the same everywhere."""
    threads = ("--threads", "1", "--device", "cpu")
    if method != "lightgcn":
        return threads
    values = ("train.epochs=2", "train.batch_size=128", "method.embedding_size=4")
    return (*threads, *(part for value in values for part in ("--set", value)))


def training(data: str, *extra: str, method: str = "lightgcn", out: str = "runs/new") -> list[str]:
    """The arguments of such a training."""
    return ["train", "--data", data, "--method", method, "--out", out, *tiny(method), *extra]


def spawn(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    """Start `python -m caged ARGUMENTS` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "caged", *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Outcome:
    out, err = process.communicate(timeout=120)
    return Outcome(process.returncode, out, err)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: the bytes of files, None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def refused(outcome: Outcome, *words: str) -> None:
    """Exit code 2, one error sentence with these words, nothing on stdout."""
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert all(line.startswith(("error: ", "warning: ")) for line in outcome.err.splitlines()), outcome.err
    for word in words:
        assert word in outcome.error


def refused_without_a_trace(folder: Path, arguments: list[str], *words: str) -> None:
    """Refused, and the working folder is what it was before."""
    before = contents(folder)
    refused(caged(*arguments, cwd=folder), *words)
    assert contents(folder) == before
