"""How far long work has come. Library functions report to a callable; who wants to see it passes a `ProgressLine`."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, Self, TextIO


class ProgressReport(Protocol):
    """Told what is being done and which share of it is done: 0 to 1, or None where nobody knows."""

    def __call__(self, what: str, share: float | None, /) -> None: ...


def unreported(what: str, share: float | None, /) -> None:
    """For whoever does not want to know."""


LIVE_AFTER = 0.5  # seconds before a line appears; shorter work leaves no trace
PLAIN_AFTER = 2.0
BETWEEN = 0.1  # seconds between two drawings of a line
UNSURE_BETWEEN = 10.0  # seconds between two plain lines where the share is not known
WIDEST = 80
BAR = 10  # characters


class ProgressLine:
    """One line that is drawn over itself, with a bar and the time left; or plain lines, one for each tenth.

    `live` is for terminals and notebooks. The line is gone when the work is done.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._live = is_watched(self._stream) if live is None else live
        self._clock, self._say = clock, say or self._write_line
        self._task: str | None = None
        self._begun = self._drawn = clock()
        self._tenth = 0
        self._width = 0  # of what stands on the line
        self._latest: tuple[str, float | None] = ("", None)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._ticking: threading.Thread | None = None

    def __call__(self, what: str, share: float | None, /) -> None:
        now = self._clock()
        task = what.partition(":")[0]
        if task != self._task or (share is not None and share * 10 < self._tenth - 1):  # something new has begun
            self._task, self._begun, self._tenth = task, now, 0
            self._drawn = now if not self._live else 0.0
        self._latest = what, share
        if self._live:
            self._draw_if_due(now)
            self._tick()
        elif now - self._begun >= PLAIN_AFTER:
            self._tell(what, share, now)

    def _tick(self) -> None:
        """Draw the line also where a step takes long and reports nothing."""
        if self._ticking is None:
            self._closed.clear()
            self._ticking = threading.Thread(target=self._ticks, daemon=True)
            self._ticking.start()

    def _ticks(self) -> None:
        while not self._closed.wait(LIVE_AFTER):
            self._draw_if_due(self._clock())

    def _draw_if_due(self, now: float) -> None:
        if now - self._begun >= LIVE_AFTER and now - self._drawn >= BETWEEN:
            self._drawn = now
            self._draw(self._described(*self._latest, now))

    def _tell(self, what: str, share: float | None, now: float) -> None:
        if share is None:
            if now - self._drawn >= UNSURE_BETWEEN:
                self._say(what)
                self._drawn = now
        elif int(share * 10) > self._tenth:
            self._tenth = int(share * 10)
            self._say(f"{what} ({10 * self._tenth}%)")

    def _described(self, what: str, share: float | None, now: float) -> str:
        room = min(WIDEST, shutil.get_terminal_size().columns) - 1  # the last column would begin a new line
        if share is None:
            return what[:room]
        share = min(max(share, 0.0), 1.0)
        left = f"{_minutes((now - self._begun) * (1 - share) / share)} left" if share > 0 else ""
        filled = round(BAR * share)
        bar = f"  [{'#' * filled}{'.' * (BAR - filled)}] {100 * share:3.0f}%  {left}"
        return what[: max(room - len(bar), 0)] + bar[:room]

    def _draw(self, text: str) -> None:
        with self._lock:
            self._stream.write("\r" + text.ljust(self._width))
            self._stream.flush()
            self._width = len(text)

    def _write_line(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def wipe(self) -> None:
        """Make room for something else; the next report draws the line again."""
        with self._lock:
            if self._width:
                self._stream.write("\r" + " " * self._width + "\r")
                self._stream.flush()
                self._width = 0

    def close(self) -> None:
        """The work is done: no line, and none to come until the next report."""
        self._closed.set()
        if self._ticking is not None:
            self._ticking.join()
            self._ticking = None
        self.wipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class EpochProgress:
    """An observer of training that reports its epochs; the share is that of the most epochs there may be."""

    def __init__(self, report: ProgressReport, name: str = "") -> None:
        self.report, self.name = report, name

    def epoch(self, line: dict[str, Any]) -> None:
        self.report(f"{self.name or line['stage']}: {_epoch(line)}", line["epoch"] / line["epochs"])


def _epoch(line: dict[str, Any]) -> str:
    text = f"epoch {line['epoch']}/{line['epochs']}, loss {line['loss']['total']:.4f}"
    return text if line["best"] is None else f"{text}, best {line['best']:.4f} at {line['best_epoch']}"


def is_watched(stream: TextIO) -> bool:
    """Whether somebody looks at a stream while it is written: on a terminal, or in a notebook."""
    return stream.isatty() or _in_notebook()


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _minutes(seconds: float) -> str:
    """
    >>> _minutes(5.4), _minutes(125), _minutes(3700)
    ('0:05', '2:05', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
