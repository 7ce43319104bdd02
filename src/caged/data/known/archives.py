"""Taking named files out of a zip or tar archive that nobody vouches for."""

from __future__ import annotations

import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from caged.errors import DataError

CHUNK = 1 << 20
LARGEST_FILE = 4 << 30  # bytes after unpacking: a small archive can hold an enormous file


def extract(archive: Path, names: Iterable[str], folder: Path, *, optional: Iterable[str] = ()) -> None:
    """Write the files called `names` into `folder`, whatever folder of the archive they lie in.

    Nothing else is written, under no other name. An archive with a path that leads outside, or with links, is refused
    as a whole: it was not made in good faith.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                _extract(archive, _zip_files(archive, opened), names, optional, folder)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as opened_tar:
                _extract(archive, _tar_files(archive, opened_tar), names, optional, folder)
        else:
            raise DataError(f"{archive.name} is neither a zip nor a tar archive; fetch it again")
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{archive.name} is damaged or cannot be unpacked ({error}); fetch it again") from error


_Opener = Callable[[], IO[bytes] | None]


def _zip_files(archive: Path, opened: zipfile.ZipFile) -> dict[str, _Opener]:
    for info in opened.infolist():
        _check_path(archive, info.filename)
    return {info.filename: partial(opened.open, info) for info in opened.infolist() if not info.is_dir()}


def _tar_files(archive: Path, opened: tarfile.TarFile) -> dict[str, _Opener]:
    for member in opened.getmembers():
        _check_path(archive, member.name)
        if not (member.isreg() or member.isdir()):
            raise DataError(f"{archive.name} is refused: '{member.name}' in it is a link or device, not a file")
    return {member.name: partial(opened.extractfile, member) for member in opened.getmembers() if member.isreg()}


def _check_path(archive: Path, name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name):
        raise DataError(f"{archive.name} is refused: the path '{name}' in it leads outside of the archive")


def _extract(
    archive: Path, files: Mapping[str, _Opener], names: Iterable[str], optional: Iterable[str], folder: Path
) -> None:
    for name in names:
        found = _named(files, name)
        if len(found) != 1:
            listed = ", ".join(sorted(files)[:10]) or "nothing"
            count = "no file" if not found else f"{len(found)} files"
            raise DataError(f"{archive.name} holds {count} named {name}, expected one; found: {listed}")
        _write(archive, name, files[found[0]], folder)
    for name in optional:
        found = _named(files, name)
        if len(found) == 1:
            _write(archive, name, files[found[0]], folder)


def _named(files: Mapping[str, _Opener], name: str) -> list[str]:
    return [path for path in files if PurePosixPath(path.replace("\\", "/")).name == name]


def _write(archive: Path, name: str, open_file: _Opener, folder: Path) -> None:
    source = open_file()
    if source is None:
        raise DataError(f"{name} in {archive.name} is no file; fetch the archive again")
    left = LARGEST_FILE
    with source, (folder / name).open("wb") as target:
        while chunk := source.read(CHUNK):
            left -= len(chunk)
            if left < 0:
                raise DataError(
                    f"{archive.name} is refused: {name} in it is larger than {LARGEST_FILE:,} bytes, more than the "
                    f"file of any known dataset"
                )
            target.write(chunk)
