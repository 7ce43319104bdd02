"""`caged data get`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caged.cli.data import getting
from caged.data.known.datasets import DATASETS
from tests.cli.invoke import caged, contents
from tests.data.known.http_server import Site
from tests.data.known.tiny import TEST, TRAIN
from tests.data.realdata import needs_real_data, real_data

# ---------------------------------------------------------------- get


def test_get_shows_the_terms_and_places_the_dataset(root: Path, site: Site) -> None:
    outcome = caged("data", "get", "tiny")
    assert outcome.code == 0, outcome.err
    assert outcome.out == f"tiny is in {root / 'tiny_set'}: 3 train, 1 test pairs, the published ones\n"
    assert outcome.err.index("terms: none") < outcome.err.index("fetching http://127.0.0.1")
    assert "(verified: none)" in outcome.err
    assert contents(root) == {"tiny_set": None, "tiny_set/train.txt": TRAIN, "tiny_set/test.txt": TEST}
    again = caged("data", "get", "tiny", "--json")
    assert json.loads(again.out)["was_there"] is True
    assert caged("data", "info", "tiny", "--json").code == 0


def test_get_elsewhere_and_from_a_folder(root: Path, site: Site, tmp_path: Path) -> None:
    assert caged("data", "get", "tiny", "--out", tmp_path / "first").code == 0
    outcome = caged("data", "get", "tiny", "--from", tmp_path / "first", "--out", tmp_path / "second")
    assert outcome.code == 0, outcome.err
    assert contents(tmp_path / "first") == contents(tmp_path / "second")
    assert contents(root) == {}


BEHAVIOURS = {
    "stalls": (lambda site: site.on("/train", site.stalled(TRAIN, 4)), "fell silent for 0.3 s"),
    "is silent": (lambda site: site.on("/train", site.silent()), "fell silent for 0.3 s"),
    "truncates": (lambda site: site.on("/train", site.truncated(TRAIN, 4)), "ended after 4 of 10 bytes"),
    "redirects for ever": (lambda site: site.on("/train", site.redirect("/train")), "redirects without end"),
    "redirects to a file": (
        lambda site: site.on("/train", site.redirect("file:///etc/passwd")),
        "will not fetch file:",
    ),
    "serves other pairs": (lambda site: site.on("/test", site.whole(b"0 1\n")), "the checksum of its test pairs"),
    "serves a page": (lambda site: site.on("/test", site.whole(b"<html></html>")), "is not dataset 'tiny'"),
    "has lost it": (lambda site: site.on("/test", site.status(404)), "answered 404 Not Found"),
    "is broken": (lambda site: site.on("/test", site.status(500)), "answered 500 Internal Server Error"),
}


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_get_from_a_server_that(name: str, root: Path, site: Site) -> None:
    misbehave, problem = BEHAVIOURS[name]
    misbehave(site)
    outcome = caged("data", "get", "tiny", "--timeout", "0.3", "--retries", "0")
    assert outcome.code == 2
    assert problem in outcome.error
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert contents(root) == {}


def test_get_from_a_server_that_recovers(root: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caged.data.known.download.LONGEST_PAUSE", 0.01)
    site.on("/train", site.status(500), site.stalled(TRAIN, 4), site.truncated(TRAIN, 4), site.whole(TRAIN))
    outcome = caged("data", "get", "tiny", "--timeout", "0.3")
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("trying again") == 3


def test_get_and_ctrl_c(root: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(getting.DownloadProgress, "_progress", interrupted)
    assert caged("data", "get", "tiny").code == 130
    assert contents(root) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("get", "gowala"), "unknown dataset 'gowala'"),
        (("get", "pinterest-caged"), "no download of 'pinterest-caged' is known (its page: https://github.com/"),
        (("get", "gowalla", "--from", "absent"), "--from absent does not exist"),
        (("get", "gowalla", "--retries", "-1"), "invalid value for '--retries'"),
        (("info", "gowalla"), "dataset 'gowalla' is not in CAGED_DATA="),
        (("info", "gowala"), "did you mean 'gowalla'"),
        (("info", "absent.csv"), "absent.csv does not exist"),
    ],
)
def test_wrong_requests(root: Path, arguments: tuple[str, ...], message: str) -> None:
    outcome = caged("data", *arguments)
    assert outcome.code == 2
    assert message in outcome.error
    assert contents(root) == {}


@pytest.mark.realdata
@needs_real_data()
@pytest.mark.parametrize("name", DATASETS)
def test_get_from_the_real_folder(name: str, tmp_path: Path) -> None:
    outcome = caged("data", "get", name, "--from", str(real_data()), "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    assert "the published ones" in outcome.out
    assert [path.name for path in tmp_path.iterdir()] == [DATASETS[name].folder]
