"""Folders that are either complete or absent: filled under a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caged.errors import RunError


def refuse_filled_folder(path: Path) -> None:
    """An error unless `path` is absent or an empty folder; ask before the work whose result is to be written."""
    try:
        if path.is_dir() and any(path.iterdir()):
            raise RunError(f"output folder {path} is not empty; choose another --out or delete it first")
    except OSError as error:
        raise _unwritable(path, error) from error
    if path.exists() and not path.is_dir():
        raise RunError(f"output folder {path} is a file; choose another --out or delete it first")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder; on success it becomes `path`, on any error it is removed."""
    refuse_filled_folder(path)
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
        if target.exists():  # empty; not every system renames onto an empty folder
            target.rmdir()
        temporary.rename(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unwritable(path: Path, error: OSError) -> RunError:
    return RunError(
        f"cannot write to output folder {path}: {error.strerror or error}; choose a folder that you may write to"
    )
