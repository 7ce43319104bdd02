"""Signals that ask a process to end."""

from __future__ import annotations

import signal
from collections.abc import Iterable

# Beside Ctrl-C: what is under way must not outlive these, nor a terminal that is closed.
ENDED_BY = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def heard(signals: Iterable[signal.Signals]) -> list[signal.Signals]:
    """Those that are not ignored, as `nohup` has it with SIGHUP."""
    return [one for one in signals if signal.getsignal(one) != signal.SIG_IGN]
