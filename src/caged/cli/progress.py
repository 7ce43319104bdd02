"""Progress on stderr, and Ctrl-C that ends an epoch properly."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Self

from caged.cli.output import live_lines, outliving_terminal, say, stderr
from caged.progress import ProgressLine, ProgressReport
from caged.signals import heard


class ScreenLine(ProgressLine):
    """On stderr, where messages take its place for a moment."""

    def __enter__(self) -> Self:
        live_lines.append(self.wipe)
        return self

    def __exit__(self, *error: object) -> None:
        live_lines.remove(self.wipe)
        self.close()

    def _draw(self, text: str) -> None:
        with outliving_terminal():
            super()._draw(text)

    def wipe(self) -> None:
        with outliving_terminal():
            super().wipe()


def progress_line(*, quiet: bool = False) -> ScreenLine:
    """Drawn over itself on a terminal, a line for each tenth elsewhere; nothing where `quiet`."""
    return ScreenLine(live=stderr.is_terminal and not quiet, say=_ignored if quiet else say)


def _ignored(message: str) -> None:
    """Who asks for JSON reads no lines."""


class StopOnCtrlC:
    """First Ctrl-C: finish what is `at_hand` (an epoch, an evaluation), save, stop. Second: stop at once; the last
    checkpoint stays. `also` are further signals that count as Ctrl-C, unless they are ignored, as `nohup` has it."""

    def __init__(self, *also: signal.Signals, at_hand: str = "this epoch or step") -> None:
        self.requested = False
        self._signals = (signal.SIGINT, *heard(also))
        self._at_hand = at_hand

    def __call__(self) -> bool:
        return self.requested

    def __enter__(self) -> Self:
        self._before = {which: signal.signal(which, self._handle) for which in self._signals}
        return self

    def __exit__(self, *_: object) -> None:
        for which, before in self._before.items():
            signal.signal(which, before)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        say(f"stopping after {self._at_hand}; press Ctrl-C again to stop now")


def stopping(report: ProgressReport, stop_requested: Callable[[], bool]) -> ProgressReport:
    """The same report, whose caller is interrupted between two steps: inside of a library an interrupt may get lost."""

    def told(what: str, share: float | None, /) -> None:
        if stop_requested():
            raise KeyboardInterrupt
        report(what, share)

    return told
