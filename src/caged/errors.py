"""The errors that users see. Each message is one sentence: what is wrong, the value seen, what is allowed,
how to fix it. The command line prints the message without a traceback and exits with code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


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


class RankLostError(CagedError):
    """Another of the processes that train together ended or no longer answers."""


class DeviceError(CagedError):
    """A device that is not there or cannot hold the problem."""


_NO_MEMORY = ("can't allocate memory", "out of memory", "not enough memory", "size calculation overflowed")


def memory_error(error: BaseException) -> DeviceError | None:
    """The sentence for memory that could not be had, whoever says so: Python, numpy, torch or CUDA; else None.

    >>> memory_error(RuntimeError("CUDA out of memory. Tried to allocate 8 GiB.")) is None
    False
    >>> memory_error(RuntimeError("shapes differ")) is None
    True
    """
    told = isinstance(error, RuntimeError) and any(text in str(error) for text in _NO_MEMORY)
    if not told and not isinstance(error, MemoryError):
        return None
    reason = str(error).splitlines()[0].split(". ")[0] if str(error) else "no more could be allocated"
    return DeviceError(
        f"memory ran out ({reason}); lower method.embedding_size or train.batch_size, take less data, or use a machine "
        "or device with more memory"
    )


@contextmanager
def memory_told() -> Iterator[None]:
    """Memory that could not be had inside is told in one sentence; whatever else happens there is not touched."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        told = memory_error(error)
        if told is None:
            raise
        raise told from error


def suggestion(wrong: object, known: Iterable[str]) -> str:
    """`"; did you mean 'x'?"` for the closest known name, or an empty string. `wrong` may not even be text.

    >>> suggestion("cagd", ["caged", "lightgcn"])
    "; did you mean 'caged'?"
    >>> suggestion("zzz", ["caged", "lightgcn"])
    ''
    """
    close = difflib.get_close_matches(str(wrong), list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(kind: str, wrong: object, known: Iterable[str]) -> str:
    """The sentence for a name that is not in a list.

    >>> unknown("method", "cagd", ["caged", "lightgcn"])
    "unknown method 'cagd'; known: caged, lightgcn; did you mean 'caged'?"
    """
    names = sorted(known)
    return f"unknown {kind} '{wrong}'; known: {', '.join(names)}{suggestion(wrong, names)}"
