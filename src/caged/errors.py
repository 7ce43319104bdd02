"""The errors that users see. Each message is one sentence: what is wrong, the value seen, what is allowed,
how to fix it. The command line prints the message without a traceback and exits with code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CagedError(Exception):
    """Base of every error that a user can cause and fix."""


class DataError(CagedError):
    """An input file, frame or split that cannot be used as it is."""


class ConfigError(CagedError):
    """An unknown name or key, or a value outside its range."""


class RunError(CagedError):
    """A run folder, checkpoint or output path that cannot be read or written."""


class TrainingError(CagedError):
    """Training cannot go on, for example because the loss is not finite."""


class DeviceError(CagedError):
    """A device that is not there or cannot hold the problem."""


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """`"; did you mean 'x'?"` for the closest known name, or an empty string.

    >>> suggestion("cagd", ["caged", "lightgcn"])
    "; did you mean 'caged'?"
    >>> suggestion("zzz", ["caged", "lightgcn"])
    ''
    """
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(kind: str, wrong: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not in a list.

    >>> unknown("method", "cagd", ["caged", "lightgcn"])
    "unknown method 'cagd'; known: caged, lightgcn; did you mean 'caged'?"
    """
    names = sorted(known)
    return f"unknown {kind} '{wrong}'; known: {', '.join(names)}{suggestion(wrong, names)}"
