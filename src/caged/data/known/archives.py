"""Taking named files out of a zip or tar archive that nobody vouches for.

Not by pooch's processors: they write under the paths that the archive names, without a limit of size, and do not look
at links and paths of a tar archive before Python 3.12.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from caged.errors import DataError

LARGEST_FILE = 4 << 30  # bytes after unpacking: a small archive can hold an enormous file


class _Member(NamedTuple):
    size: int  # what the archive says; no more than that is ever unpacked
    open: Callable[[], IO[bytes] | None]


def extract(archive: Path, names: Sequence[str], folder: Path, *, optional: Sequence[str] = ()) -> None:
    """Write the files called `names` into `folder`, whatever folder of the archive they lie in.

    Nothing else is written, under no other name. An archive with a path that leads outside, or with links, is refused
    as a whole: it was not made in good faith.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                _extract(archive, _zip_members(archive, opened), names, optional, folder)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as opened_tar:
                _extract(archive, _tar_members(archive, opened_tar), names, optional, folder)
        else:
            raise DataError(f"{archive.name} is neither a zip nor a tar archive; fetch it again")
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{archive.name} is damaged or cannot be unpacked ({error}); fetch it again") from error


def _zip_members(archive: Path, opened: zipfile.ZipFile) -> dict[str, _Member]:
    for info in opened.infolist():
        _check_path(archive, info.filename)
    files = (info for info in opened.infolist() if not info.is_dir())
    return {info.filename: _Member(info.file_size, partial(opened.open, info)) for info in files}


def _tar_members(archive: Path, opened: tarfile.TarFile) -> dict[str, _Member]:
    for info in opened.getmembers():
        _check_path(archive, info.name)
        if not (info.isreg() or info.isdir()):
            raise DataError(f"{archive.name} is refused: '{info.name}' in it is a link or device, not a file")
    files = (info for info in opened.getmembers() if info.isreg())
    return {info.name: _Member(info.size, partial(opened.extractfile, info)) for info in files}


def _check_path(archive: Path, name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name):
        raise DataError(f"{archive.name} is refused: the path '{name}' in it leads outside of the archive")


def _extract(
    archive: Path, members: Mapping[str, _Member], names: Sequence[str], optional: Sequence[str], folder: Path
) -> None:
    for name in (*names, *optional):
        found = _named(members, name)
        if len(found) == 1:
            _write(archive, found[0], folder / name)
        elif name in names:
            listed = ", ".join(sorted(members)[:10]) or "nothing"
            count = "no file" if not found else f"{len(found)} files"
            raise DataError(f"{archive.name} holds {count} named {name}, expected one; found: {listed}")


def _named(members: Mapping[str, _Member], name: str) -> list[_Member]:
    return [member for path, member in members.items() if PurePosixPath(path.replace("\\", "/")).name == name]


def _write(archive: Path, member: _Member, target: Path) -> None:
    if member.size > LARGEST_FILE:
        raise DataError(
            f"{archive.name} is refused: {target.name} in it is larger than {LARGEST_FILE:,} bytes, more than the file "
            f"of any known dataset"
        )
    source = member.open()
    if source is None:
        raise DataError(f"{target.name} in {archive.name} is no file; fetch the archive again")
    with source, target.open("wb") as handle:
        shutil.copyfileobj(source, handle)
