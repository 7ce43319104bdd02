"""The recorded results that a table is asked for: `<dataset>/<protocol>/<method>[-<variant>]/seed<k>.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from caged.errors import ConfigError, RunError, unknown
from caged.files import read_json
from caged.products.compare import Entry, read_result

FIRST = "lightgcn"  # the row that the others are compared with, where it is there


class Found(NamedTuple):
    entries: list[Entry]  # finished ones, in the order of the table
    unfinished: int  # results that were left out, because their run failed or never ended


def read_results(
    root: Path,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    protocol: str | None = None,
) -> Found:
    """The results below `root`. `datasets` and `methods` are names or wildcards; a table has them in this order."""
    if not root.is_dir():
        raise RunError(f"results folder {root} does not exist; give the folder that --record wrote to")
    files = [path for path in sorted(root.glob("*/*/*/seed*.json")) if path.is_file()]
    if not files:
        raise RunError(f"{root} holds no recorded results; train with --record {root} first")
    files = _chosen(files, "dataset", datasets, _dataset)
    files = _chosen(files, "protocol", None if protocol is None else [protocol], _protocol)
    files = _chosen(files, "method", methods, _method)
    if methods is None:
        files.sort(key=lambda path: _method(path) != FIRST)
    finished = [path for path in files if _status(path) == "finished"]
    if not finished:
        raise RunError(f"none of the {len(files)} results chosen below {root} is finished; choose others")
    return Found([read_result(path) for path in finished], len(files) - len(finished))


def _dataset(path: Path) -> str:
    return path.parents[2].name


def _protocol(path: Path) -> str:
    return path.parents[1].name


def _method(path: Path) -> str:
    return path.parents[0].name


def _status(path: Path) -> str | None:
    stored = read_json(path)
    return stored.get("status") if isinstance(stored, dict) else None


def _chosen(
    files: Iterable[Path], kind: str, patterns: Sequence[str] | None, name_of: Callable[[Path], str]
) -> list[Path]:
    """The files whose name matches one of the patterns, in the order of the patterns; each once."""
    files = list(files)
    if patterns is None:
        return files
    names = sorted({name_of(path) for path in files})
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(unknown(kind, pattern, names))
    matching = ([path for path in files if fnmatchcase(name_of(path), pattern)] for pattern in patterns)
    return list(dict.fromkeys(path for part in matching for path in part))
