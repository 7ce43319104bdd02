"""Which process something belongs to, and whether that process is still there."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")
STARTED = 18  # the field of /proc/PID/stat that says when, counted from the one after the state
DEAD = ("Z", "X")  # states of a process that ended and whose parent has not asked about it yet


def process_namespace() -> str | None:
    """Within which process numbers mean something: containers may share the name of the host."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def process_of(pid: int) -> str | None:
    """When the computer and the process were started: no two processes of one number share both. Linux only."""
    try:
        boot, status = BOOT.read_text(encoding="ascii").strip(), Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, *further = status.rpartition(") ")[2].split()
    return None if state in DEAD else f"{boot}/{further[STARTED]}"


def signature() -> str:
    """Of this process, to be part of the name of a file."""
    return f"{os.getpid()}-{_digest(process_of(os.getpid()))}-{_place()}"


def signed_here(signed: str) -> bool:
    """Whether it can be told if the process of a signature is still there: not of another computer or container, nor of
    this computer before it was started again."""
    return BOOT.exists() and signed.endswith(f"-{_place()}")


def signed_by_the_dead(signed: str) -> bool:
    """Whether the process of a signature is surely gone."""
    pid, process, _ = signed.split("-")
    return signed_here(signed) and process != _digest(process_of(int(pid)))


def _place() -> str:
    boot = BOOT.read_text(encoding="ascii") if BOOT.exists() else ""
    return _digest(f"{platform.node()} {process_namespace()} {boot}")


def _digest(text: str | None) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()[:8]
