"""A line that fits, wipes itself, and is quiet about short work; plain lines by tenths elsewhere."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

import caged
from caged.progress import EpochProgress, ProgressLine, is_watched


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def drawn(stream: io.StringIO) -> list[str]:
    return [part.rstrip() for part in stream.getvalue().split("\r") if part.strip()]


def test_a_line_fits_80_columns_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, live=True, clock=clock)
    line("train: " + "x" * 200, 0.0)
    clock.now = 30.0
    line("train: " + "x" * 200, 0.25)
    line.close()
    shown = drawn(stream)[-1]
    assert shown.endswith("[##........]  25%  1:30 left")
    assert len(shown) <= 80
    assert stream.getvalue().endswith(" \r")  # nothing is left behind


def test_short_work_leaves_no_trace() -> None:
    for live in (True, False):
        stream, clock = io.StringIO(), Clock()
        with ProgressLine(stream, live=live, clock=clock) as line:
            for step in range(10):
                clock.now = step / 100
                line("simulating", step / 10)
        assert stream.getvalue() == ""


def test_elsewhere_there_is_a_line_for_each_tenth() -> None:
    stream, clock = io.StringIO(), Clock()
    with ProgressLine(stream, live=False, clock=clock) as line:
        for step in range(101):
            clock.now = float(step)
            line("simulating: round", step / 100)
    assert stream.getvalue().splitlines() == [f"simulating: round ({tenth}%)" for tenth in range(10, 101, 10)]


def test_work_of_unknown_size_is_told_now_and_then() -> None:
    stream, clock = io.StringIO(), Clock()
    with ProgressLine(stream, live=False, clock=clock) as line:
        for second in range(35):
            clock.now = float(second)
            line(f"reading: {second} rows", None)
    assert stream.getvalue().splitlines() == ["reading: 10 rows", "reading: 20 rows", "reading: 30 rows"]


def test_a_step_that_reports_nothing_is_shown_too() -> None:
    """The line is drawn again from a thread of its own, which ends with the work."""
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, live=True, clock=clock)
    line("auditing: reading the logs", 0.0)
    clock.now = 5.0
    for _ in range(100):
        if stream.getvalue():
            break
        line._closed.wait(0.05)
    thread = line._ticking
    line.close()
    assert drawn(stream)[0].startswith("auditing: reading the logs")
    assert thread is not None
    assert not thread.is_alive()


def test_an_epoch_is_told_with_its_loss_and_the_best_so_far() -> None:
    told: list[tuple[str, float | None]] = []
    watch = EpochProgress(lambda what, share: told.append((what, share)), "CAGED")
    line = {"stage": "train", "epoch": 5, "epochs": 10, "loss": {"total": 0.25}, "best": 0.5, "best_epoch": 4}
    watch.epoch({**line, "validation": {"recall@20": 0.4}})
    assert told == [("CAGED: epoch 5/10, loss 0.2500, best 0.5000 at 4", 0.5)]


@pytest.mark.parametrize(("shell", "watched"), [("ZMQInteractiveShell", True), ("TerminalInteractiveShell", False)])
def test_a_notebook_is_watched(monkeypatch: pytest.MonkeyPatch, shell: str, watched: bool) -> None:
    running = type(shell, (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: running))
    assert is_watched(io.StringIO()) is watched


def test_fit_draws_where_asked_and_is_silent_in_a_script(
    capsys: pytest.CaptureFixture[str], pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caged.progress.PLAIN_AFTER", 0.0)
    data = caged.Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs])
    model = caged.LightGCN(embedding_size=4, epochs=3, batch_size=128, device="cpu")
    model.fit(data)
    assert "epoch" not in capsys.readouterr().err
    model.fit(data, progress=True)
    assert "epoch 3/3" in capsys.readouterr().err
