"""Downloads from a server that stalls, truncates, redirects and lies; archives made in bad faith; placement."""

from __future__ import annotations

import dataclasses
import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caged.data.interactions import Interactions
from caged.data.known import archives, download
from caged.data.known.acquire import Reporter, acquire
from caged.data.known.archives import extract
from caged.data.known.datasets import Archive, Dataset, Home, PlainFile
from caged.data.known.download import DownloadError, Patience, fetch
from caged.data.known.layouts import Layout
from caged.errors import CagedError, DataError, RunError
from tests.cli.invoke import contents
from tests.data.known.http_server import Site, serving

CONTENT = bytes(range(256)) * 1024  # 256 KiB: several reads
TAG = '"v1"'


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        yield running


def patient(retries: int = 2, stall_seconds: float = 0.3) -> tuple[Patience, list[float]]:
    """Patience that does not really pause, and the pauses it would have made."""
    pauses: list[float] = []
    return Patience(stall_seconds=stall_seconds, retries=retries, sleep=pauses.append), pauses


def fetched(url: str, target: Path, **options: Any) -> bytes:
    patience, _ = patient(**options)
    fetch(url, target, patience=patience)
    return target.read_bytes()


def refusal(url: str, target: Path, **options: Any) -> str:
    """The sentence of a download that fails, having left nothing."""
    patience, _ = patient(**options)
    with pytest.raises(CagedError) as caught:
        fetch(url, target, patience=patience)
    assert contents(target.parent) == {}
    return str(caught.value)


# ---------------------------------------------------------------- what goes well in the end


def test_a_file_arrives_with_progress(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    fetch(site.on("/f", site.whole(CONTENT)), tmp_path / "f", progress=lambda *step: seen.append(step))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)
    assert len(seen) > 2


def test_a_file_of_unknown_length_arrives(site: Site, tmp_path: Path) -> None:
    assert fetched(site.on("/f", site.chunked(CONTENT)), tmp_path / "f") == CONTENT


def test_a_slow_server_is_not_a_silent_one(site: Site, tmp_path: Path) -> None:
    url = site.on("/f", site.slow(CONTENT, pieces=5, pause=0.1))
    assert fetched(url, tmp_path / "f", stall_seconds=0.3, retries=0) == CONTENT
    assert len(site.requests) == 1


@pytest.mark.parametrize("code", [500, 502, 503, 429])
def test_a_server_that_recovers_is_asked_again(site: Site, tmp_path: Path, code: int) -> None:
    patience, pauses = patient()
    said: list[str] = []
    url = site.on("/f", site.status(code), site.status(code), site.whole(CONTENT))
    fetch(url, tmp_path / "f", patience=patience, say=said.append)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert pauses == [1.0, 2.0]
    assert said[0].startswith(f"the server answered {code}")
    assert said[0].endswith("trying again in 1 s")


def test_pauses_double_up_to_a_limit(site: Site, tmp_path: Path) -> None:
    patience, pauses = patient(retries=7)
    with pytest.raises(DownloadError, match="8 times"):
        fetch(site.on("/f", site.status(500)), tmp_path / "f", patience=patience)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize("way", ["truncated", "stalled"])
def test_a_broken_transfer_goes_on_where_it_stopped(site: Site, tmp_path: Path, way: str) -> None:
    broken = getattr(site, way)(CONTENT, 100_000, ETag=TAG)
    url = site.on("/f", broken, site.rest(CONTENT, 100_000, ETag=TAG))
    assert fetched(url, tmp_path / "f") == CONTENT
    _, headers = site.requests[1]
    assert headers["Range"] == "bytes=100000-"
    assert headers["If-Range"] == TAG


def test_a_changed_file_starts_over(site: Site, tmp_path: Path) -> None:
    changed = CONTENT[::-1]
    url = site.on("/f", site.truncated(CONTENT, 100_000, ETag=TAG), site.whole(changed, ETag='"v2"'))
    assert fetched(url, tmp_path / "f") == changed


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"v1"'}])
def test_without_a_strong_tag_nothing_is_glued_together(site: Site, tmp_path: Path, headers: dict[str, str]) -> None:
    url = site.on("/f", site.truncated(CONTENT, 100_000, **headers), site.whole(CONTENT))
    assert fetched(url, tmp_path / "f") == CONTENT
    assert "Range" not in site.requests[1][1]


def test_a_wrong_continuation_is_thrown_away(site: Site, tmp_path: Path) -> None:
    url = site.on(
        "/f", site.truncated(CONTENT, 100_000, ETag=TAG), site.rest(CONTENT, 50_000, ETag=TAG), site.whole(CONTENT)
    )
    assert fetched(url, tmp_path / "f") == CONTENT
    url = site.on(
        "/g", site.truncated(CONTENT, 100_000, ETag=TAG), site.rest(CONTENT, 100_000, ETag='"v2"'), site.whole(CONTENT)
    )
    assert fetched(url, tmp_path / "g") == CONTENT


def test_a_range_that_cannot_be_had_starts_over(site: Site, tmp_path: Path) -> None:
    url = site.on("/f", site.truncated(CONTENT, 100_000, ETag=TAG), site.status(416), site.whole(CONTENT))
    assert fetched(url, tmp_path / "f") == CONTENT


def test_a_chunked_transfer_that_breaks_is_repeated(site: Site, tmp_path: Path) -> None:
    url = site.on("/f", site.chunked(CONTENT, complete=False), site.chunked(CONTENT))
    assert fetched(url, tmp_path / "f") == CONTENT


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_followed(site: Site, tmp_path: Path, code: int) -> None:
    site.on("/end", site.whole(CONTENT))
    site.on("/middle", site.redirect("/end", code))
    assert fetched(site.on("/f", site.redirect("/middle", code)), tmp_path / "f") == CONTENT


# ---------------------------------------------------------------- what does not


def test_a_missing_file_is_not_asked_for_twice(site: Site, tmp_path: Path) -> None:
    message = refusal(site.address + "/gone", tmp_path / "f")
    assert "the server answered 404 Not Found; the file may have moved" in message
    assert len(site.requests) == 1


def test_a_server_that_never_recovers(site: Site, tmp_path: Path) -> None:
    message = refusal(site.on("/f", site.status(503)), tmp_path / "f")
    assert "the server answered 503 Service Unavailable (3 times); try again later" in message


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("truncated", "the transfer ended after 1,000 of 262,144 bytes (2 times)"),
        ("stalled", "the server fell silent for 0.3 s (2 times)"),
    ],
)
def test_a_transfer_that_always_breaks(site: Site, tmp_path: Path, way: str, problem: str) -> None:
    assert problem in refusal(site.on("/f", getattr(site, way)(CONTENT, 1000)), tmp_path / "f", retries=1)


def test_a_server_that_never_answers(site: Site, tmp_path: Path) -> None:
    assert "the server fell silent for 0.3 s; try" in refusal(site.on("/f", site.silent()), tmp_path / "f", retries=0)


def test_nobody_there(tmp_path: Path) -> None:
    with serving() as gone:
        url = gone.address + "/f"
    assert "the server refused the connection" in refusal(url, tmp_path / "f", retries=0)


def test_a_chunked_transfer_that_always_breaks(site: Site, tmp_path: Path) -> None:
    url = site.on("/f", site.chunked(CONTENT, complete=False))
    assert "the transfer ended early" in refusal(url, tmp_path / "f")


def test_endless_redirects(site: Site, tmp_path: Path) -> None:
    circle = site.on("/a", site.redirect("/b"))
    site.on("/b", site.redirect("/a"))
    assert "redirects without end (more than 5 times" in refusal(circle, tmp_path / "f")
    for step in range(20):
        site.on(f"/{step}", site.redirect(f"/{step + 1}"))
    assert "redirects without end" in refusal(site.address + "/0", tmp_path / "f")
    assert len(site.requests) < 20


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/f"])
def test_redirects_out_of_the_web_are_refused(site: Site, tmp_path: Path, location: str) -> None:
    message = refusal(site.on("/f", site.redirect(location)), tmp_path / "f")
    assert f"will not fetch {location}" in message
    assert len(site.requests) == 1


def test_only_the_web_is_fetched_from(tmp_path: Path) -> None:
    assert "its protocol is 'file'" in refusal("file:///etc/passwd", tmp_path / "f")
    with pytest.raises(DownloadError, match="its protocol is 'http', allowed here: https"):
        download._check_protocol("http://127.0.0.1/", secure=True)


@pytest.mark.parametrize("way", ["whole", "chunked"])
def test_a_file_without_end_is_refused(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(download, "LARGEST_DOWNLOAD", 100_000)
    assert "larger than" in refusal(site.on("/f", getattr(site, way)(CONTENT)), tmp_path / "f")


def test_ctrl_c_leaves_nothing(site: Site, tmp_path: Path) -> None:
    def stop(done: int, total: int | None) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site.on("/f", site.whole(CONTENT)), tmp_path / "f", progress=stop)
    assert contents(tmp_path) == {}


def test_a_target_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"could not write to .*absent: No such file"):
        fetch(site.on("/f", site.whole(CONTENT)), tmp_path / "absent" / "f")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full on this system")
def test_a_full_disk(site: Site, tmp_path: Path) -> None:
    (tmp_path / "f").symlink_to("/dev/full")
    with pytest.raises(RunError, match="No space left on device; free space"):
        fetch(site.on("/f", site.whole(CONTENT)), tmp_path / "f")
    assert contents(tmp_path) == {}


# ---------------------------------------------------------------- archives


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


# ---------------------------------------------------------------- datasets

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
