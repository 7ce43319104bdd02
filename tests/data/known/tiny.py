"""A dataset of two users, the server that offers it, and archives to order."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

from caged.data.interactions import Interactions
from caged.data.known.datasets import Archive, Dataset, Home, PlainFile
from caged.data.known.layouts import Layout
from tests.data.known.http_server import Site

TRAIN, TEST = b"0 1 2\n1 3\n", b"0 3\n"


def tiny(home: Home | None) -> Dataset:
    expected = {
        "train": Interactions.from_ids([0, 0, 1], [1, 2, 3]).fingerprint,
        "test": Interactions.from_ids([0], [3]).fingerprint,
    }
    return Dataset(
        name="tiny",
        title="two users",
        folder="tiny_set",
        layouts=(Layout({"train": "train.txt", "test": "test.txt"}, beside=("LICENCE",)),),
        users=2,
        items=3,
        interactions=4,
        fingerprints=expected,
        terms="none",
        citation="nobody",
        home=home,
    )


def two_files(site: Site, train: bytes = TRAIN, test: bytes = TEST) -> Home:
    urls = site.on("/train", site.whole(train)), site.on("/test", site.whole(test))
    return Home("https://example.org", (PlainFile(urls[0], "train.txt"), PlainFile(urls[1], "test.txt")))


def archive_at(site: Site, content: bytes) -> Home:
    url = site.on("/tiny.zip", site.whole(content))
    return Home("https://example.org", (Archive(url, ("train.txt", "test.txt"), optional=("LICENCE",)),))


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: dict[str, bytes], *, link: str | None = None) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        if link:
            info = tarfile.TarInfo("set/link")
            info.type, info.linkname = tarfile.SYMTYPE, link
            archive.addfile(info)
    return path
