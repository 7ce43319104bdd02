"""A dataset appears in the data folder whole, from the web or from here, or not at all."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from caged.data.known.acquire import Reporter, acquire
from caged.data.known.datasets import Archive, Home
from caged.data.known.download import DownloadError
from caged.errors import DataError, RunError
from tests.cli.invoke import contents
from tests.data.known.http_server import Site
from tests.data.known.tiny import TEST, TRAIN, archive_at, tiny, two_files, zipped


def test_a_dataset_appears_below_the_root(site: Site, tmp_path: Path) -> None:
    got = acquire(tiny(two_files(site)), tmp_path / "data")
    assert contents(tmp_path / "data") == {"tiny_set": None, "tiny_set/train.txt": TRAIN, "tiny_set/test.txt": TEST}
    assert (got.was_there, got.source.path) == (False, tmp_path / "data" / "tiny_set")


def test_an_archive_is_unpacked_and_gone(site: Site, tmp_path: Path) -> None:
    packed = zipped(tmp_path / "t.zip", {"t/train.txt": TRAIN, "t/test.txt": TEST, "t/LICENCE": b"L", "t/x": b"X"})
    acquire(tiny(archive_at(site, packed.read_bytes())), tmp_path / "data")
    assert contents(tmp_path / "data" / "tiny_set") == {"train.txt": TRAIN, "test.txt": TEST, "LICENCE": b"L"}


def test_what_is_there_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    row = tiny(two_files(site))
    acquire(row, tmp_path)
    count = len(site.requests)
    assert acquire(row, tmp_path).was_there
    assert len(site.requests) == count


def test_what_is_there_but_different_is_not_touched(site: Site, tmp_path: Path) -> None:
    (tmp_path / "tiny_set").mkdir()
    (tmp_path / "tiny_set" / "train.txt").write_bytes(b"0 1\n1 3\n")
    (tmp_path / "tiny_set" / "test.txt").write_bytes(TEST)
    before = contents(tmp_path)
    with pytest.raises(DataError, match=r"is there already, but its train pairs are not the published ones"):
        acquire(tiny(two_files(site)), tmp_path)
    assert contents(tmp_path) == before
    assert site.requests == []


def test_a_filled_folder_of_other_things_is_not_touched(site: Site, tmp_path: Path) -> None:
    (tmp_path / "tiny_set").mkdir()
    (tmp_path / "tiny_set" / "thesis.txt").write_bytes(b"precious")
    with pytest.raises(RunError, match="is not empty"):
        acquire(tiny(two_files(site)), tmp_path)
    assert contents(tmp_path) == {"tiny_set": None, "tiny_set/thesis.txt": b"precious"}


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (b"0 1 2\n1 4\n", r"the checksum of its train pairs is [0-9a-f]{16}\.\.\., expected .* nothing was kept"),
        (
            b"<html>Please log in</html>\n",
            r"is not dataset 'tiny': train\.txt, line 1: '<html>Please' is not an integer",
        ),
        (b"\x1f\x8b\x00\x00", r"is not dataset 'tiny': train\.txt is not"),
        (b"", r"is not dataset 'tiny': train\.txt is empty"),
    ],
)
def test_wrong_bytes_leave_nothing(site: Site, tmp_path: Path, train: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        acquire(tiny(two_files(site, train=train)), tmp_path)
    assert contents(tmp_path) == {}


def test_a_page_instead_of_an_archive_leaves_nothing(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"tiny\.zip is neither a zip nor a tar archive"):
        acquire(tiny(archive_at(site, b"<html>")), tmp_path)
    assert contents(tmp_path) == {}


def test_failing_at_the_second_file_leaves_nothing(site: Site, tmp_path: Path) -> None:
    home = two_files(site)
    site.on("/test", site.status(404))
    with pytest.raises(DownloadError, match="404"):
        acquire(tiny(home), tmp_path)
    assert contents(tmp_path) == {}


def test_ctrl_c_during_the_second_file_leaves_nothing(site: Site, tmp_path: Path) -> None:
    started: list[str] = []

    def progress(done: int, total: int | None) -> None:
        if len(started) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        acquire(tiny(two_files(site)), tmp_path, reporter=Reporter(starting=started.append, progress=progress))
    assert contents(tmp_path) == {}


def test_no_home(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no download of 'tiny' is known; put train.txt and test.txt into a folder"):
        acquire(tiny(None), tmp_path)
    with pytest.raises(DataError, match=r"is known \(its page: https://example.org\)"):
        acquire(tiny(Home("https://example.org")), tmp_path)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("below", [".", "tiny_set", "tiny"])
def test_from_a_local_folder(tmp_path: Path, below: str) -> None:
    origin = tmp_path / "mine" / below
    origin.mkdir(parents=True)
    for name, content in {"train.txt": TRAIN, "test.txt": TEST, "LICENCE": b"L", "notes": b"N"}.items():
        (origin / name).write_bytes(content)
    got = acquire(tiny(None), tmp_path / "data", origin=tmp_path / "mine")
    assert contents(got.source.path) == {"train.txt": TRAIN, "test.txt": TEST, "LICENCE": b"L"}


def test_from_an_archive_that_was_fetched_by_hand(site: Site, tmp_path: Path) -> None:
    packed = zipped(tmp_path / "t.zip", {"t/train.txt": TRAIN, "t/test.txt": TEST})
    row = tiny(archive_at(site, b""))
    acquire(row, tmp_path / "data", origin=packed)
    assert contents(tmp_path / "data" / "tiny_set") == {"train.txt": TRAIN, "test.txt": TEST}
    assert site.requests == []


def test_from_nowhere(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--from .*absent does not exist; give a folder with train.txt and test.txt"):
        acquire(tiny(None), tmp_path / "data", origin=tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    home = Home("https://example.org", (Archive("https://example.org/tiny.zip", ("train.txt",)),))
    with pytest.raises(DataError, match=r"holds neither train.txt and test.txt .*, or the archive tiny\.zip"):
        acquire(tiny(home), tmp_path / "data", origin=tmp_path / "empty")
    assert not (tmp_path / "data").exists()


def test_a_local_copy_of_other_pairs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(TRAIN)
    (tmp_path / "test.txt").write_bytes(b"1 1\n")
    row = dataclasses.replace(tiny(None), folder="elsewhere")
    with pytest.raises(DataError, match="the checksum of its test pairs"):
        acquire(row, tmp_path / "data", origin=tmp_path)
    assert contents(tmp_path / "data") == {}


def test_without_pooch_only_the_web_is_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    home = Home("https://example.org", (Archive("https://example.org/t.zip", ("train.txt", "test.txt")),))
    with pytest.raises(DownloadError, match=r"needs the package pooch.*pip install 'caged-rec\[data\]'"):
        acquire(tiny(home), tmp_path / "data")
    assert contents(tmp_path / "data") == {}
    packed = zipped(tmp_path / "t.zip", {"t/train.txt": TRAIN, "t/test.txt": TEST})
    acquire(tiny(home), tmp_path / "data", origin=packed)
    assert contents(tmp_path / "data" / "tiny_set") == {"train.txt": TRAIN, "test.txt": TEST}
