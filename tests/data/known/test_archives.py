"""Archives made in good faith and in bad."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from caged.data.known import archives
from caged.data.known.archives import extract
from caged.errors import DataError
from tests.cli.invoke import contents
from tests.data.known.tiny import tarred, zipped


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_named_files_leave_the_archive_and_nothing_else(tmp_path: Path, pack: Any) -> None:
    files = {"set/a.txt": b"A", "set/deep/b.txt": b"B", "set/other": b"C", "__MACOSX/set/._a.txt": b"D"}
    out = tmp_path / "out"
    out.mkdir()
    extract(pack(tmp_path / "x.bin", files), ["a.txt", "b.txt"], out, optional=["README", "other"])
    assert contents(out) == {"a.txt": b"A", "b.txt": b"B", "other": b"C"}


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("path", ["../evil.txt", "/etc/evil.txt", "set/../../a.txt", "..\\evil.txt", "C:\\evil.txt"])
def test_paths_that_lead_outside_are_refused(tmp_path: Path, pack: Any, path: str) -> None:
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    archive = pack(tmp_path / "x.bin", {"set/a.txt": b"A", path: b"evil"})
    with pytest.raises(DataError, match=r"x\.bin is refused: the path .* leads outside"):
        extract(archive, ["a.txt"], out)
    assert contents(tmp_path / "deep") == {"out": None}


def test_links_in_a_tar_archive_are_refused(tmp_path: Path) -> None:
    archive = tarred(tmp_path / "x.tar.gz", {"set/a.txt": b"A"}, link="/etc/passwd")
    with pytest.raises(DataError, match="'set/link' in it is a link"):
        extract(archive, ["a.txt"], tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"set/b.txt": b""}, r"holds no file named a\.txt, expected one; found: set/b\.txt"),
        ({"1/a.txt": b"", "2/a.txt": b""}, r"holds 2 files named a\.txt"),
        ({}, "found: nothing"),
    ],
)
def test_an_archive_without_the_files(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    with pytest.raises(DataError, match=message):
        extract(zipped(tmp_path / "x.zip", files), ["a.txt"], tmp_path)


def test_damaged_archives(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "x.zip", {"set/a.txt": os.urandom(1000)}).read_bytes()
    flipped = bytearray(whole)
    flipped[200] ^= 255
    packed = tarred(tmp_path / "y.tar.gz", {"set/a.txt": os.urandom(100_000)}).read_bytes()
    for name, content in {"cut.zip": whole[:-30], "flip.zip": bytes(flipped), "cut.tgz": packed[:50_000]}.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"{name} is (damaged|neither)"):
            extract(path, ["a.txt"], tmp_path)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_FILE", 1_000_000)
    bomb = zipped(tmp_path / "x.zip", {"set/a.txt": bytes(3_000_000)})
    with pytest.raises(DataError, match=r"a\.txt in it is larger than 1,000,000 bytes"):
        extract(bomb, ["a.txt"], tmp_path)
