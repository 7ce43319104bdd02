"""Ctrl-C, and what counts as it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from caged.cli.progress import StopOnCtrlC, stopping


def test_the_first_asks_and_the_second_stops_at_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    with StopOnCtrlC() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_signals_may_count_as_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopOnCtrlC(signal.SIGTERM) as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop()
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with StopOnCtrlC(signal.SIGTERM) as stop:
            signal.raise_signal(signal.SIGTERM)
            assert not stop()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_work_that_reports_is_stopped_between_two_steps(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    with StopOnCtrlC(at_hand="this block") as stop:
        report = stopping(lambda what, share: told.append(what), stop)
        report("one", None)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            report("two", None)
    assert told == ["one"]
    assert "stopping after this block" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="of terminals as Linux has them")
@pytest.mark.parametrize("written", ["say('stopped')", "line._draw('epoch 1')", "line._draw(''); line.wipe()"])
def test_work_outlives_its_terminal(written: str) -> None:
    """What it still has to say must not fail it."""
    script = f"""
import os, pty
terminal, mine = pty.openpty()
os.dup2(mine, 2)
from caged.cli.progress import progress_line, say
line = progress_line()
line._draw("epoch 1")
os.close(terminal)
{written}
raise SystemExit(7)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 7
