"""One `caged` command under observation; `tools.walk` starts it in a process of its own.

    python tools/tracer.py FOLDER train --data log.csv ...

writes `trace.json` into the current folder: which files of the package did something, which files below FOLDER were
read how often, and which costly functions were called again with the very same arguments. The package is the one that
comes first on the path; nothing of it is imported here, so that any version can be observed.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

# Done once is enough. By name, wherever the function lives; a version that has no such function never calls it.
COSTLY = {
    "Reference.__post_init__",
    "ItemGroups.from_degrees",
    "UserGroups.from_interactions",
    "Interactions.fingerprint",
    "measure",
    "intervals",
    "per_user_table",
    "sums_table",
    "recommendations_table",
    "check_split_options",
    "load_data",
    "load_checkpoint",
    "read_run",
    "RunFolder.read",
    "read_audit",
    "_of_group",
}
# Functions of libraries that open a file without Python's `open`, and the argument that names it.
OPENERS = {
    ("parquet", "ParquetFile.__init__"): "source",
    ("parquet", "ParquetDataset.__init__"): "path_or_paths",
    ("parquet", "read_schema"): "where",
    ("safetensors", "load_file"): "filename",
}


class Tracer:
    """What `sys.setprofile` and `sys.addaudithook` report, sorted."""

    def __init__(self, package: Path, watched: Path) -> None:
        self.package, self.watched = f"{package}{os.sep}", f"{watched}{os.sep}"
        self.passed: set[str] = set()
        self.reads: Counter[str] = Counter()
        self.calls: Counter[tuple[str, tuple[Any, ...]]] = Counter()
        self._kept: list[Any] = []  # arguments, alive: else another object could get the number of an old one

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(self.package):
            self._passed(frame)
            if code.co_qualname in COSTLY:
                self.calls[code.co_qualname, self._arguments(frame)] += 1
        else:
            self._opened(frame)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR):
            self._read(arguments[0])

    def _passed(self, frame: FrameType) -> None:
        """A file counts once a function in it runs for the command, not merely because it is imported."""
        file = frame.f_code.co_filename.removeprefix(self.package)
        if file not in self.passed and not any(_is_import(code, self.package) for code in _stack(frame)):
            self.passed.add(file)

    def _opened(self, frame: FrameType) -> None:
        code = frame.f_code
        for (library, name), argument in OPENERS.items():
            if code.co_qualname == name and library in code.co_filename:
                self._read(frame.f_locals[argument])

    def _read(self, file: Any) -> None:
        if isinstance(file, str | os.PathLike):
            path = str(Path(file).resolve())
            if path.startswith(self.watched):
                self.reads[path.removeprefix(self.watched)] += 1

    def _arguments(self, frame: FrameType) -> tuple[Any, ...]:
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        given = [frame.f_locals[name] for name in names]
        if frame.f_code.co_name == "__post_init__":  # the object is new; what counts is what it was made from
            given = [getattr(given[0], field.name) for field in dataclasses.fields(given[0])]
        self._kept.append(given)
        return tuple(str(one) if isinstance(one, str | int | os.PathLike) else id(one) for one in given)


def _stack(frame: FrameType) -> list[CodeType]:
    codes = []
    inner: FrameType | None = frame
    while inner is not None:
        codes.append(inner.f_code)
        inner = inner.f_back
    return codes


def _is_import(code: CodeType, package: str) -> bool:
    """The body of a module or of a class."""
    return code.co_filename.startswith(package) and not code.co_flags & inspect.CO_OPTIMIZED


def observed(command: Callable[[], None], tracer: Tracer) -> int:
    sys.addaudithook(tracer.audit)
    threading.setprofile(tracer.profile)
    sys.setprofile(tracer.profile)
    try:
        command()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return 0


def main() -> None:
    watched, *arguments = sys.argv[1:]
    import caged
    from caged.__main__ import main as command

    tracer = Tracer(Path(caged.__file__).parent, Path(watched).resolve())
    sys.argv = ["caged", *arguments]
    code = observed(command, tracer)
    again = Counter(dict.fromkeys(COSTLY, 0))
    for (name, _), times in tracer.calls.items():
        again[name] += times - 1
    found = {
        "passed": sorted(tracer.passed),
        "reads": dict(sorted(tracer.reads.items())),
        "again": {name: times for name, times in sorted(again.items()) if times},
    }
    Path("trace.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    sys.exit(code)


if __name__ == "__main__":
    main()
