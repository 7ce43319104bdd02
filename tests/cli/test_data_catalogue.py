"""`caged data list`, `caged data get` and `caged data info`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caged.cli.data import getting
from caged.data.known.datasets import DATASETS
from tests.cli.invoke import caged, contents
from tests.conftest import write_log
from tests.data.known.http_server import Site, serving
from tests.data.known.tiny import TEST, TRAIN, tiny, two_files
from tests.data.realdata import needs_real_data, real_data


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("CAGED_DATA", str(folder))
    return folder


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server, and a dataset `tiny` whose home it is."""
    pytest.importorskip("pooch", reason="downloads need pooch")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        monkeypatch.setitem(DATASETS, "tiny", tiny(two_files(running)))
        yield running


# ---------------------------------------------------------------- list


def test_list_shows_sizes_terms_homes_and_what_is_here(root: Path) -> None:
    (root / "gowalla").mkdir()
    for part in ("train", "test"):
        (root / "gowalla" / f"{part}.txt.gz").touch()
    outcome = caged("data", "list")
    assert outcome.code == 0
    sizes, homes, terms = (
        {line.split()[0]: line for line in table.splitlines()} for table in outcome.out.split("\n\n")
    )
    assert set(DATASETS) < set(sizes)
    assert sizes["gowalla"].split()[1:] == ["29,858", "40,981", "1,027,370", "yes"]
    assert sizes["yelp2018"].split()[4] == "no"
    assert sizes["pinterest-caged"].startswith("pinterest-caged (a part)")
    assert homes["ml-1m"].split() == ["ml-1m", "https://grouplens.org/datasets/movielens/1m/", "none"]
    assert "no commercial use" in terms["ml-1m"]
    assert str(root) in outcome.err


def test_list_as_json(root: Path) -> None:
    listed = json.loads(caged("data", "list", "--json").out)
    assert listed["data_folder"] == str(root)
    rows = {row["name"]: row for row in listed["datasets"]}
    assert set(rows) == set(DATASETS)
    assert all(row["verified"] is None for row in rows.values())
    assert rows["pinterest-caged"]["partial"].startswith("37,501 of 55,186 users")
    assert rows["pinterest-caged"]["downloads"] == []
    assert rows["coat"]["fingerprints"] == DATASETS["coat"].fingerprints


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


# ---------------------------------------------------------------- info


def test_info_of_a_log(tmp_path: Path) -> None:
    pairs = [("a", "x"), ("a", "y"), ("a", "x"), ("b", "x"), ("c", "x"), ("c", "z")]
    path = write_log(tmp_path / "log.csv", pairs)
    described = json.loads(caged("data", "info", path, "--json").out)
    log = described["parts"]["log"]
    assert (described["users"], described["items"], described["interactions"]) == (3, 3, 5)
    assert (described["duplicates"], described["density"], described["published"]) == (1, 5 / 9, None)
    assert log["per_user"] == {"min": 1, "median": 2.0, "max": 2}
    assert math.isclose(log["gini"], (-2 * 1 + 0 * 1 + 2 * 3) / (3 * 5))
    assert log["top_20_percent_share"] == 3 / 5
    plain = caged("data", "info", path)
    assert "duplicates merged" in plain.out
    assert log["fingerprint"] in plain.out


def test_info_of_a_split_counts_what_train_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("0 1 2\n1 1\n")
    (tmp_path / "test.txt").write_text("0 3 4\n1 3\n2 1\n")
    described = json.loads(caged("data", "info", tmp_path, "--json").out)
    test = described["parts"]["test"]
    assert (test["items_not_in_train"], test["interactions_of_items_not_in_train"], test["users_not_in_train"]) == (
        2,
        3,
        1,
    )
    assert described["gini"] == described["parts"]["train"]["gini"]
    assert "items not in train" in caged("data", "info", tmp_path).out


def test_info_says_when_files_were_changed(root: Path, site: Site) -> None:
    assert caged("data", "get", "tiny").code == 0
    assert "the published pairs" in caged("data", "info", "tiny").out
    (root / "tiny_set" / "test.txt").write_text("1 1\n")
    outcome = caged("data", "info", "tiny")
    assert "NOT the published pairs" in outcome.out
    assert "note: the test pairs are not the published ones" in outcome.out


# ---------------------------------------------------------------- the real datasets, as their description prints them

# name: users, items, parts, density in percent, and what is printed about parts as (part, key, value)
PUBLISHED: dict[str, tuple[int, int, dict[str, int], float | None, list[tuple[str, str, Any]]]] = {
    "ml-1m-caged": (
        6_040,
        3_706,
        {"train": 797_758, "test": 202_451},
        4.47,
        [
            ("train", "gini", 0.634),
            ("train", "top_20_percent_share", 0.652),
            ("test", "gini", 0.636),
            ("train", "items", 3_675),
            ("test", "items", 3_488),
            ("train", "users", 6_040),
            ("test", "users", 6_040),
            ("train", "per_user", {"min": 16, "median": 76, "max": 1_851}),
            ("test", "per_user", {"min": 4, "median": 20, "max": 463}),
            ("test", "items_not_in_train", 31),
            ("test", "interactions_of_items_not_in_train", 39),
        ],
    ),
    "epinions-caged": (
        11_496,
        11_656,
        {"train": 257_810, "test": 70_132},
        0.245,
        [
            ("train", "gini", 0.529),
            ("train", "top_20_percent_share", 0.597),
            ("test", "gini", 0.567),
            ("train", "per_user", {"min": 8, "median": 15, "max": 440}),
            ("test", "per_user", {"min": 2, "median": 4, "max": 111}),
            ("test", "items_not_in_train", 4),
            ("test", "interactions_of_items_not_in_train", 14),
        ],
    ),
    "pinterest-caged": (
        37_501,
        9_836,
        {"train": 785_408, "test": 214_746},
        0.271,
        [
            ("train", "gini", 0.468),
            ("train", "top_20_percent_share", 0.494),
            ("test", "gini", 0.475),
            ("train", "items", 9_791),
            ("test", "items", 9_415),
            ("train", "per_user", {"min": 8, "median": 19, "max": 98}),
            ("test", "per_user", {"min": 2, "median": 5, "max": 25}),
            ("test", "items_not_in_train", 45),
            ("test", "interactions_of_items_not_in_train", 53),
        ],
    ),
    "ml-1m": (6_040, 3_706, {"log": 1_000_209}, None, []),
    "ml-100k": (943, 1_682, {"log": 100_000}, None, []),
    "ml-latest-small": (610, 9_724, {"log": 100_836}, None, []),
    "coat": (
        290,
        300,
        {"train": 6_960, "test": 4_640},
        None,
        [("train", "per_user", {"min": 24, "median": 24, "max": 24}), ("test", "dropped", 366)],
    ),
    "gowalla": (
        29_858,
        40_981,
        {"train": 810_128, "test": 217_242},
        0.084,
        [
            ("train", "gini", 0.441),
            ("train", "top_20_percent_share", 0.530),
            ("train", "users", 29_858),
            ("train", "items", 40_981),
            ("train", "per_user", {"min": 8, "median": 16, "max": 811}),
            ("test", "items_not_in_train", 0),
        ],
    ),
    "yelp2018": (
        31_668,
        38_048,
        {"train": 1_237_259, "test": 324_147},
        0.130,
        [
            ("train", "gini", 0.532),
            ("train", "top_20_percent_share", 0.595),
            ("train", "users", 31_668),
            ("train", "items", 38_048),
            ("train", "per_user", {"min": 16, "median": 25, "max": 1_848}),
            ("test", "items_not_in_train", 0),
        ],
    ),
    "yelp2018-ood": (
        31_668,
        38_048,
        {"train": 937_416, "valid": 155_860, "test": 233_920, "test_ood": 234_210},
        None,
        [
            ("train", "gini", 0.610),
            ("valid", "gini", 0.653),
            ("test", "gini", 0.637),
            ("test_ood", "gini", 0.224),
            ("valid", "items_not_in_train", 161),
            ("test", "items_not_in_train", 252),
            ("test_ood", "items_not_in_train", 357),
            ("test_ood", "interactions_of_items_not_in_train", 3_370),
            ("test_ood", "users", 31_668 - 5_678),
        ],
    ),
    "lastfm": (
        1_880,
        4_489,
        {"train": 42_135, "test": 10_533},
        None,
        [("test", "items_not_in_train", 13), ("test", "users_not_in_train", 2)],
    ),
}


def test_every_dataset_has_its_printed_statistics_checked() -> None:
    assert set(PUBLISHED) == set(DATASETS)


@pytest.mark.realdata
@needs_real_data()
@pytest.mark.parametrize("name", PUBLISHED)
def test_info_reproduces_the_printed_statistics(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    users, items, parts, density, printed = PUBLISHED[name]
    monkeypatch.setenv("CAGED_DATA", str(real_data()))
    outcome = caged("data", "info", name, "--json")
    assert outcome.code == 0, outcome.err
    described = json.loads(outcome.out)
    assert described["published"] is True
    assert (described["users"], described["items"], described["duplicates"]) == (users, items, 0)
    in_files = {part: values["interactions"] + values["dropped"] for part, values in described["parts"].items()}
    assert in_files == parts
    if density is not None:
        digits = len(str(density).partition(".")[2])
        assert round(100 * described["density"], digits) == density
    for part, key, value in printed:
        found = described["parts"][part][key]
        assert (round(found, 3) if isinstance(value, float) else found) == value, (part, key)
    first = "train" if "train" in parts else "log"
    assert described["gini"] == described["parts"][first]["gini"]
    if name == "pinterest-caged":
        assert "is a part of its dataset" in described["notes"][0]


@pytest.mark.realdata
@needs_real_data()
@pytest.mark.parametrize("name", DATASETS)
def test_get_from_the_real_folder(name: str, tmp_path: Path) -> None:
    outcome = caged("data", "get", name, "--from", str(real_data()), "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    assert "the published ones" in outcome.out
    assert [path.name for path in tmp_path.iterdir()] == [DATASETS[name].folder]
