"""Progress of training on stderr, and Ctrl-C that ends an epoch properly."""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any, Self

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn

from caged.cli.output import say, stderr
from caged.page.numbers import number

PLAIN_SECONDS = 10.0  # between two lines where stderr is no terminal


class TrainingProgress:
    """Loss, validation metric and time left: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last_line = time.monotonic()
        if stderr.is_terminal and not quiet:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=stderr, transient=True)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def epoch(self, line: dict[str, Any]) -> None:
        if self.quiet:
            return
        text = self._describe(line)
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(text, total=line["epochs"])
            self._bar.update(self._task, description=text, completed=line["epoch"], total=line["epochs"])
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            say(text)
            self._last_line = time.monotonic()

    def _describe(self, line: dict[str, Any]) -> str:
        text = f"{line['stage']} epoch {line['epoch']}/{line['epochs']}  loss {number(line['loss']['total'])}"
        if line["validation"] is not None:
            monitor, value = next(iter(line["validation"].items()))  # the one that decides comes first
            text += f"  {monitor} {number(value)}"
        if line["best"] is not None:
            text += f" (best {number(line['best'])} at {line['best_epoch']})"
        return text


class StopOnCtrlC:
    """First Ctrl-C: finish what is at hand (an epoch, an evaluation), save, stop. Second: stop at once; the last
    checkpoint stays."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self) -> bool:
        return self.requested

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        say("stopping after this epoch or step; press Ctrl-C again to stop at once")
