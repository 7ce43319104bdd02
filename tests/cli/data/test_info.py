"""`caged data info`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from caged.data.known.datasets import DATASETS
from tests.cli.invoke import caged
from tests.conftest import write_log
from tests.data.known.http_server import Site
from tests.data.realdata import needs_real_data, real_data


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
        {"train": 1_905, "test": 769 + 366, "test_negative": 3_505},
        None,
        [("train", "users", 290), ("test", "dropped", 366)],
    ),
    "kuairand": (
        19_685,
        5_169,
        {"train": 350_660, "valid": 150_738, "test": 127_146, "test_negative": 462_484},
        0.618,
        [
            ("train", "gini", 0.696),
            ("valid", "gini", 0.699),
            ("test", "users", 16_087),
            ("test_negative", "users", 16_078),
        ],
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
