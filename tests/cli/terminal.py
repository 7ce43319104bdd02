"""A terminal of a chosen width for commands that run in this process."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from caged.cli import output
from tests.cli.invoke import Outcome, caged

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[None]:
    """Both streams look like a terminal to rich, and have this width."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict("os.environ", {"FORCE_COLOR": "1", "COLUMNS": str(columns)}))
        for console in (output.stdout, output.stderr):
            stack.enter_context(mock.patch.object(console, "_width", columns))
        yield


def on_terminal(columns: int, *arguments: str | Path, cwd: Path | None = None) -> Outcome:
    """`caged ARGUMENTS` as a person sees it, without the colours."""
    with terminal(columns):
        outcome = caged(*arguments, cwd=cwd)
    return Outcome(outcome.code, ESCAPES.sub("", outcome.out), ESCAPES.sub("", outcome.err))
