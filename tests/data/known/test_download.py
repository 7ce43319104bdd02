"""Downloads from a server that stalls, truncates, redirects and lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from caged.data.known import download
from caged.data.known.download import DownloadError, Patience, fetch
from caged.errors import CagedError, RunError
from tests.cli.invoke import contents
from tests.data.known.http_server import Site, serving

CONTENT = bytes(range(256)) * 1024  # 256 KiB: several reads
TAG = '"v1"'
STOP = download.CHUNK  # where a transfer breaks off: behind a piece that has been written


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
    broken = getattr(site, way)(CONTENT, STOP, ETag=TAG)
    url = site.on("/f", broken, site.rest(CONTENT, STOP, ETag=TAG))
    assert fetched(url, tmp_path / "f") == CONTENT
    _, headers = site.requests[1]
    assert headers["Range"] == f"bytes={STOP}-"
    assert headers["If-Range"] == TAG


def test_a_changed_file_starts_over(site: Site, tmp_path: Path) -> None:
    changed = CONTENT[::-1]
    url = site.on("/f", site.truncated(CONTENT, STOP, ETag=TAG), site.whole(changed, ETag='"v2"'))
    assert fetched(url, tmp_path / "f") == changed


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"v1"'}])
def test_without_a_strong_tag_nothing_is_glued_together(site: Site, tmp_path: Path, headers: dict[str, str]) -> None:
    url = site.on("/f", site.truncated(CONTENT, STOP, **headers), site.whole(CONTENT))
    assert fetched(url, tmp_path / "f") == CONTENT
    assert "Range" not in site.requests[1][1]


def test_a_wrong_continuation_is_thrown_away(site: Site, tmp_path: Path) -> None:
    url = site.on(
        "/f", site.truncated(CONTENT, STOP, ETag=TAG), site.rest(CONTENT, 50_000, ETag=TAG), site.whole(CONTENT)
    )
    assert fetched(url, tmp_path / "f") == CONTENT
    url = site.on(
        "/g", site.truncated(CONTENT, STOP, ETag=TAG), site.rest(CONTENT, STOP, ETag='"v2"'), site.whole(CONTENT)
    )
    assert fetched(url, tmp_path / "g") == CONTENT


def test_a_range_that_cannot_be_had_starts_over(site: Site, tmp_path: Path) -> None:
    url = site.on("/f", site.truncated(CONTENT, STOP, ETag=TAG), site.status(416), site.whole(CONTENT))
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
    pytest.importorskip("pooch", reason="downloads need pooch")
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
