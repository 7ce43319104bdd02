"""Results kept under version control: one small JSON per run, and archives that carry a tree of them.

    results/<dataset>/<protocol>/<method>[-<variant>]/seed<k>.json
    results/<dataset>/<protocol>/<method>[-<variant>]/seed<k>.users.parquet   see `runs.recorded_users`

A result is written when a run starts (status `running`) and again when it ends, so failed and lost runs are listed
too. Tables and figures read these files only. (`--record` writes them, so users know them as records.)
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from caged.errors import ConfigError, RunError
from caged.files import make_parent, replacing, write_bytes, write_json
from caged.runs.recorded_users import SUFFIX as USERS

MOST_BYTES = 4 << 20  # a result is a few kilobytes; anything near this is none
MACHINE_KEYS = ("data_path", "record", "no_report", "checksums")  # of run.json: about the folder on this machine
ABSOLUTE_FOLDER = re.compile(r"""(?<![\w.~:/*?\]-])/(?=[^\s/])(?:[^\s/'"]+/)*""")


@dataclass(frozen=True)
class ResultPlace:
    """Where the result of a run goes, and under which name."""

    root: Path
    variant: str | None = None

    def path(self, dataset: str, spec: Mapping[str, Any]) -> Path:
        """The file for a run of this specification (as JSON)."""
        if self.variant is not None and not re.fullmatch(r"[A-Za-z0-9._-]+", self.variant):
            raise ConfigError(
                f"variant '{self.variant}' must consist of letters, digits, '.', '_' and '-'; choose another name"
            )
        method = f"{spec['method']}-{self.variant}" if self.variant else str(spec["method"])
        return self.root.joinpath(dataset, spec["protocol"], method, f"seed{spec['seed']}.json")

    def checked_path(self, dataset: str, spec: Mapping[str, Any]) -> Path:
        """The same; refused where it could not be written, without creating anything."""
        path = self.path(dataset, spec)
        refuse_unwritable(path.parent)
        return path


def refuse_unwritable(folder: Path) -> None:
    """An error where no record could be written to `folder`, which need not exist yet; nothing is created."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise RunError(f"cannot write records below {existing}; choose a --record folder that you may write to")


def write_result(
    path: Path, run: Mapping[str, Any], metrics: dict[str, Any] | None, details: Mapping[str, Any] | None = None
) -> None:
    """What `run.json` and `metrics.json` hold, less paths of this machine; `details` is what figures and tests need."""
    public = {key: shareable(value) for key, value in run.items() if key not in MACHINE_KEYS}
    make_parent(path)
    measured = metrics or {"protocol": run["spec"]["protocol"], "metrics": None}
    write_json(path, {**public, **measured, **(details or {})})


def shareable(value: Any) -> Any:
    """`value` with every absolute path cut to its last part.

    >>> shareable("caged train --data /home/ann/log.csv --out runs/first")
    'caged train --data log.csv --out runs/first'
    >>> shareable("caged bench --only 'phases/*/ml-1m/*'")
    "caged bench --only 'phases/*/ml-1m/*'"
    """
    if isinstance(value, dict):
        return {key: shareable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shareable(item) for item in value]
    return ABSOLUTE_FOLDER.sub("", value) if isinstance(value, str) else value


def pack(root: Path, archive: Path) -> int:
    """All results below `root`, with their values per user, as one .tar.gz; returns their number. Equal results give
    equal bytes."""
    if not root.is_dir():
        raise RunError(f"results folder {root} does not exist; give the folder that --record wrote to")
    files = sorted(root.rglob("*.json"))
    if not files:
        raise RunError(f"{root} holds no records (*.json); train with --record {root} first")
    files = sorted([*files, *(file for file in root.rglob(f"*{USERS}") if file.with_name(_record_of(file)).exists())])
    results = {file.relative_to(root).as_posix(): _read_result(file) for file in files}
    with (
        replacing(archive) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as compressed,  # no name, no date: equal bytes
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for name, content in results.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return _records_in(results)


def unpack(archive: Path, root: Path, *, overwrite: bool = False) -> int:
    """Place the results of an archive below `root`; returns their number. Nothing is written if any of them is bad."""
    results = _read_archive(archive)
    present = [name for name, content in results.items() if _differs(root / name, content)]
    if present and not overwrite:
        raise RunError(
            f"{len(present)} records exist already with other content, e.g. {root / present[0]}; "
            "use --overwrite to replace them"
        )
    for name, content in results.items():
        target = root / name
        make_parent(target)
        write_bytes(target, content)
    return _records_in(results)


def _record_of(users: Path) -> str:
    return users.name.removesuffix(USERS) + ".json"


def _records_in(results: Mapping[str, bytes]) -> int:
    """Without the files beside them."""
    return sum(name.endswith(".json") for name in results)


def _differs(path: Path, content: bytes) -> bool:
    return path.exists() and _read_bytes(path) != content


def _read_result(path: Path) -> bytes:
    content = _read_bytes(path)
    _check_content(content, path.name, str(path))
    return content


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RunError(f"cannot read record {path}: {error.strerror}; check the file and its rights") from error


def _read_archive(archive: Path) -> dict[str, bytes]:
    results = {}
    try:
        content = gzip.decompress(archive.read_bytes())  # as a whole: only so is a cut-off end noticed
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for member in tar:
                results[member.name] = _read_member(archive, tar, member)
    except FileNotFoundError as error:
        raise RunError(f"archive {archive} does not exist; give a file made by caged results pack") from error
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise RunError(f"{archive} is not a readable .tar.gz ({error}); pack and copy it again") from error
    return results


def _read_member(archive: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The content of one result, refusing whatever could land outside the folder or is none."""
    path = PurePosixPath(member.name)
    outside = path.is_absolute() or ".." in path.parts
    known = path.suffix == ".json" or path.name.endswith(USERS)
    if not member.isfile() or outside or not known or member.size > MOST_BYTES:
        raise RunError(
            f"{archive} holds '{member.name}', which is not a record; only relative *.json and *{USERS} files are "
            "allowed"
        )
    handle = tar.extractfile(member)
    assert handle is not None  # a regular file always has content
    content = handle.read()
    _check_content(content, path.name, f"{archive}: '{member.name}'")
    return content


def _check_content(content: bytes, file: str, name: str) -> None:
    if file.endswith(USERS):  # the record has its checksum
        if not content.startswith(b"PAR1"):
            raise RunError(f"{name} is not a Parquet file; restore it from where the run was recorded")
        return
    try:
        json.loads(content)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunError(f"{name} is not valid JSON ({error}); restore or delete it, then pack again") from error
