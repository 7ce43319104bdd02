"""`run.lock`: who is working on a run folder. One process at a time writes to it.

A process that is killed leaves its lock behind. The next one on the same computer sees that nobody of that process
number, started at that moment, runs any more, and takes the lock over.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from caged.errors import RunError
from caged.processes import process_namespace, process_of

LOCK = "run.lock"
LARGEST_PID = 2**31 - 1


@dataclass(frozen=True)
class Holder:
    pid: int
    host: str
    namespace: str | None
    process: str | None  # tells processes of one number apart; None where the system does not say
    since: str

    @classmethod
    def this_process(cls) -> Holder:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(os.getpid(), platform.node(), process_namespace(), process_of(os.getpid()), now)

    @property
    def is_gone(self) -> bool:
        """Nobody can tell for a process on another computer or in another container, so that one is there."""
        if (self.host, self.namespace) != (platform.node(), process_namespace()):
            return False
        if self.process is not None:
            return process_of(self.pid) != self.process
        return _no_such_process(self.pid)


def holds_a_lock_alone(folder: Path) -> bool:
    """What is left where a process was killed before it wrote anything else."""
    return folder.is_dir() and [file.name for file in folder.iterdir()] == [LOCK]


def refuse_held(folder: Path) -> None:
    """An error that names the holder where somebody works on `folder`: not the moment to be told to delete it."""
    holder = _holder(folder / LOCK)
    if holder is not None and not holder.is_gone:
        raise _refusal(folder / LOCK, holder)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else works on `folder` meanwhile; an error that names the holder where somebody does."""
    path = folder / LOCK
    _take(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def _take(path: Path) -> None:
    try:
        with _one_at_a_time(path.parent):
            refuse_held(path.parent)
            path.unlink(missing_ok=True)
            with path.open("x", encoding="utf-8") as handle:
                json.dump(asdict(Holder.this_process()), handle)
    except FileExistsError as error:  # where the file system knows no `flock`
        raise RunError(f"another process took {path} at this moment; wait for it, or use another --out") from error
    except OSError as error:
        raise RunError(f"could not write {path}: {error.strerror}; choose a folder that you may write to") from error


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Or two processes that find the lock of a dead one could both take it. The system lets go when a process dies."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have none
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _holder(path: Path) -> Holder | None:
    """None where there is no lock, or one whose writer died before it was complete."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        holder = Holder(**said)
    except (FileNotFoundError, NotADirectoryError, TypeError, ValueError):
        return None
    except OSError as error:
        raise RunError(f"could not read {path}: {error.strerror}; delete it if nobody works on the folder") from error
    return holder if isinstance(said["pid"], int) and 0 < holder.pid <= LARGEST_PID else None


def _refusal(path: Path, holder: Holder) -> RunError:
    return RunError(
        f"process {holder.pid} on {holder.host} has been working on {path.parent} since {holder.since}; wait until it "
        f"ends, or, if you are sure that it is gone, delete {path}"
    )


def _no_such_process(pid: int) -> bool:
    if os.name == "nt":  # there, signal 0 is Ctrl-C
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
