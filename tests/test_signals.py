"""What asks a process to end."""

from __future__ import annotations

import signal

from caged.signals import ENDED_BY, heard


def test_neither_a_closed_terminal_nor_an_end_of_the_system_leaves_work_behind() -> None:
    assert {signal.SIGTERM, signal.SIGHUP} <= set(ENDED_BY)


def test_what_is_ignored_is_not_heard() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert heard([signal.SIGTERM, signal.SIGHUP]) == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGHUP, before)
