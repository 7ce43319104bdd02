"""Files and folders that are either complete or absent: written beside the target, then renamed."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from caged.errors import ConfigError, RunError
from caged.processes import signature, signed_by_the_dead, signed_here

_NUMBERS = re.compile(r"\[\n([-+.\deE,\s]+)\]")  # a list of numbers, one per line
_log = logging.getLogger(__name__)
PAGES = (".html", ".md", ".tex")  # files that commands write for people; none of them is ever read
CHECKSUM = "checksum"  # the key of a JSON file that says what the rest of it has to be


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path`, on any error it is removed.

    A link stays one, and what it leads to is replaced. A device or a pipe cannot be replaced and is an error. A failing
    disk (full, read-only, quota) becomes a `RunError` that names the target.
    """
    target = _end_of_links(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        if _is_special(path):
            raise RunError(f"could not write {path}: it is no regular file; choose another place")
        yield temporary
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(target)
    except OSError as error:
        raise RunError(
            f"could not write {path}: {error.strerror or error}; free space or choose another place, then try again"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files that a killed process left in `folder`: those of `replacing` and of safetensors."""
    for pattern in (".*.tmp", ".tmp*"):
        for leftover in folder.glob(pattern):
            with suppress(OSError):
                leftover.unlink()


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode("utf-8"))


def json_ready(value: Any) -> Any:
    """`value` with NaN and infinities replaced by None (JSON has neither) and numpy scalars by Python's."""
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value


def write_json(path: Path, value: Any) -> None:
    """Indented, but a list of numbers stays in one line: a history of a thousand epochs has no thousand lines."""
    text = json.dumps(json_ready(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{path} does not exist; is {path.parent} a complete folder?") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise RunError(f"{path} is not readable JSON ({error}); it may be truncated, restore or delete it") from error


def checksum_of(value: Any) -> str:
    """SHA-256 of what JSON makes of it, keys sorted."""
    return hashlib.sha256(json.dumps(json_ready(value), sort_keys=True).encode()).hexdigest()


def write_sealed_json(path: Path, values: dict[str, Any]) -> None:
    """With a checksum, so that `read_sealed_json` notices a number that is not the one that was written."""
    write_json(path, {**values, CHECKSUM: checksum_of(values)})


def read_sealed_json(path: Path) -> Any:
    """What was written; files of earlier versions have no checksum and are taken as they are."""
    found = read_json(path)
    if isinstance(found, dict) and CHECKSUM in found and found.pop(CHECKSUM) != checksum_of(found):
        raise RunError(f"{path} was changed since it was written: it no longer has its checksum; restore it")
    return found


def check_file(
    option: str,
    path: Path,
    inputs: Iterable[str | Path | None] = (),
    logs: Iterable[str | Path | None] = (),
) -> None:
    """Before the work: a file of this name can be written. `option` is how the user named it.

    It must replace nothing that the command reads. A folder among the `inputs`, such as a run, gets no file at all. One
    among the `logs`, which may be the working folder, gets new files and pages.
    """
    target = _end_of_links(path)
    if target.is_dir() or not target.parent.is_dir():
        raise ConfigError(f"cannot write {option} {path}; name a file in a folder that exists")
    if _is_special(path):
        raise ConfigError(f"cannot write {option} {path}: it is no regular file; name another one")
    for given in _given(inputs):
        if target.is_relative_to(given):
            raise ConfigError(f"cannot write {option} {path}: {_read_there(target, given)}; name a file elsewhere")
    for given in _given(logs):
        adds = given.is_dir() and (not target.exists() or target.suffix in PAGES)
        if target.is_relative_to(given) and not adds:
            raise ConfigError(f"cannot write {option} {path}: {_read_there(target, given)}; name a new file")


def _given(paths: Iterable[str | Path | None]) -> Iterator[Path]:
    return (_end_of_links(path) for path in paths if path is not None)


def _read_there(target: Path, given: Path) -> str:
    return "the same command reads it" if target == given else f"the same command reads the folder {given}"


def _end_of_links(path: str | Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve does not take links that lead in a circle


def _is_special(path: Path) -> bool:
    """A device, a pipe and the like."""
    return path.exists() and not path.is_file() and not path.is_dir()


def make_parent(path: Path) -> None:
    """Create the folder of a file that is about to be written."""
    if path.is_dir():
        raise RunError(f"cannot write {path}: it is a folder; name a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot create {path.parent}: {error.strerror}; choose a folder you may write to") from error


def refuse_filled_folder(path: Path) -> None:
    """An error unless `path` is absent or an empty folder; ask before the work whose result is to be written."""
    try:
        if path.is_dir() and any(path.iterdir()):
            raise RunError(f"output folder {path} is not empty; choose another --out or delete it first")
        _refuse_file(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def make_output_folder(path: Path) -> Path:
    """Create an output folder, refusing one that holds anything already."""
    refuse_filled_folder(path)
    return make_writable_folder(path)


def make_writable_folder(path: Path) -> Path:
    """Create a folder, whatever it holds already, and try that files can be written to it."""
    try:
        _refuse_file(path)
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe-{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder; on success it becomes `path`, on any error it is removed.

    What a process that was killed left of it is removed by the next one for the same `path`.
    """
    refuse_filled_folder(path)
    target = path.resolve()
    _remove_unfinished(target)
    temporary = target.with_name(f".{target.name}.{signature()}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        yield temporary
        for file in (path for path in temporary.rglob("*") if path.is_file()):
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
        if target.exists():  # empty; not every system renames onto an empty folder
            target.rmdir()
        temporary.rename(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_unfinished(target: Path) -> None:
    """The temporary folders of dead processes that were to become `target`, which may be many times as large."""
    named = re.compile(re.escape(f".{target.name}.") + r"(?:(\d+-[0-9a-f]{8}-[0-9a-f]{8})\.)?[0-9a-f]{8}\.tmp")
    beside: list[Path] = []
    with suppress(OSError):  # whether there is such a folder, and who may write to it, is found out later
        beside += target.parent.iterdir()
    for path in beside:
        found = named.fullmatch(path.name)
        if found is None or path.is_symlink() or not path.is_dir():
            continue
        if found[1] is not None and signed_by_the_dead(found[1]):
            shutil.rmtree(path, ignore_errors=True)
        elif found[1] is None or not signed_here(found[1]):
            _log.warning(
                "%s was to become %s and was never finished, unless a process elsewhere still writes it; if none does, "
                "delete it",
                path,
                target,
            )


def _refuse_file(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise RunError(f"output folder {path} is a file; choose another --out or delete it first")


def _unwritable(path: Path, error: OSError) -> RunError:
    return RunError(
        f"cannot write to output folder {path}: {error.strerror or error}; choose a folder that you may write to"
    )
