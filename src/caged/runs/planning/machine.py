"""What is known about this machine, without torch."""

from __future__ import annotations

from pathlib import Path


def available_memory(meminfo: Path = Path("/proc/meminfo"), limits: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What Linux says could be had without swapping, within the limit of the container if there is one."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="utf-8").splitlines())
        available = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None
    try:
        most = int((limits / "memory.max").read_text(encoding="utf-8"))
        used = int((limits / "memory.current").read_text(encoding="utf-8"))
        cached = dict(line.split() for line in (limits / "memory.stat").read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):  # no container, or "max"
        return available
    return min(available, most - used + int(cached.get("file", 0)))
