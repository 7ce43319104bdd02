"""The table of known datasets, and whether files hold the published pairs."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from caged.data import load
from caged.data.known.datasets import DATASETS, Archive
from caged.data.known.folder import dataset_named
from caged.data.shown import ShownAtRandom, popularity_contrast
from caged.data.source import dataset, item_titles
from caged.errors import DataError
from tests.data.known.written import put
from tests.data.realdata import needs_real_data, real_data

NAMES = {
    "ml-1m",
    "ml-100k",
    "ml-latest-small",
    "gowalla",
    "yelp2018",
    "yelp2018-ood",
    "coat",
    "kuairand",
    "lastfm",
    "ml-1m-caged",
    "epinions-caged",
    "pinterest-caged",
}


# ---------------------------------------------------------------- the table


def test_the_names_of_the_design_are_all_there() -> None:
    assert set(DATASETS) == NAMES
    assert len({row.folder for row in DATASETS.values()}) == len(NAMES)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_row_can_be_recognised_again(name: str) -> None:
    row = DATASETS[name]
    assert all(re.fullmatch(r"[0-9a-f]{64}", checksum) for checksum in row.fingerprints.values())
    assert len(set(row.fingerprints.values())) == len(row.fingerprints)
    divided = set() if row.liked_from is None else {"test_negative"}  # out of the test file, by rating
    for layout in row.layouts:
        assert set(layout.files) | divided == set(row.fingerprints)
    assert row.terms
    assert row.citation


@pytest.mark.parametrize("name", sorted(NAMES))
def test_homes_offer_what_a_layout_needs_over_https_and_claim_no_check(name: str) -> None:
    home = DATASETS[name].home
    assert home is not None
    assert home.status == "verified: none"
    assert all(url.startswith("https://") for url in [home.page, *(download.url for download in home.downloads)])
    offered = {
        file
        for download in home.downloads
        for file in (download.names if isinstance(download, Archive) else (download.name,))
    }
    assert not offered or any(set(layout.files.values()) <= offered for layout in DATASETS[name].layouts)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(DataError, match=r"unknown dataset 'ml1m'; known: coat, .*did you mean 'ml-1m'"):
        dataset_named("ml1m")


# ---------------------------------------------------------------- are they the published pairs?


def test_other_pairs_than_the_published_are_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root / "gowalla", train__txt="0 1 2\n1 3\n", test__txt="0 3\n")
    source = load("gowalla")
    assert source.notes == ("the train and test pairs are not the published ones of gowalla: its files differ",)
    actual = {name: part.fingerprint for name, part in source.contents.items()}
    monkeypatch.setitem(DATASETS, "gowalla", dataclasses.replace(DATASETS["gowalla"], fingerprints=actual))
    assert load("gowalla").notes == ()


# ---------------------------------------------------------------- the real files


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAGED_DATA", str(real_data()))


@pytest.mark.realdata
@needs_real_data()
@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_real_files_hold_the_published_pairs(real: None, name: str) -> None:
    row, source = DATASETS[name], load(name)
    assert {part: pairs.fingerprint for part, pairs in source.contents.items()} == row.fingerprints
    whole = dataset(name, min_rating=None if row.liked_from is None else 1)  # all that is rated
    assert (whole.user_count, whole.item_count) == (row.users, row.items)
    assert len(whole) + sum(source.dropped.values()) == row.interactions


@pytest.mark.realdata
@needs_real_data()
@pytest.mark.parametrize(
    ("name", "listed", "item", "title"),
    [
        ("ml-1m", 3_883, 0, "Toy Story (1995)"),
        ("ml-1m-caged", 3_883, 3_951, "Contender, The (2000)"),
        ("ml-100k", 1_682, 50, "Star Wars (1977)"),
        ("ml-latest-small", 9_742, 1, "Toy Story (1995)"),
    ],
)
def test_every_real_item_has_a_title(real: None, name: str, listed: int, item: int, title: str) -> None:
    titles = item_titles(name)
    assert titles.num_rows == listed
    assert title in titles.filter(pa.compute.equal(titles["item_id"], item))["title"].to_pylist()
    assert set(dataset(name).item_ids.values.to_pylist()) <= set(titles["item_id"].to_pylist())


@pytest.mark.realdata
@needs_real_data()
def test_five_stars_of_movielens_by_official_part(real: None) -> None:
    source = load("ml-1m", min_rating=5)
    assert source.log is not None
    assert len(source.log) == 225_626
    assert np.count_nonzero(source.log.columns["caged_test"]) == 45_842
    assert "5,103 further pairs" in source.notes[-1]  # 4,295 in [4,5], 806 in [3,5], 2 in [1,5]
    assert len(dataset("ml-1m", min_rating=4)) == 225_626 + 342_803 + 4_295


@pytest.mark.realdata
@needs_real_data()
def test_what_popularity_is_worth_in_kuairand(real: None) -> None:
    """The figures that the market `kuairand` is made to have."""
    source = load("kuairand")
    parts = source.parts
    assert parts is not None
    assert {name: len(part) for name, part in parts.items()} == {
        "train": 350_660,
        "valid": 150_738,
        "test": 127_146,
        "test_negative": 462_484,
    }
    shown = ShownAtRandom.of(parts["test"], parts["test_negative"])
    contrast = popularity_contrast(parts["train"].item_groups, shown)
    assert contrast.degree.ratio == pytest.approx(96.31, abs=0.005)
    assert contrast.like_rate == pytest.approx((0.3161, 0.1636), abs=5e-5)
    assert contrast.like_rate.ratio == pytest.approx(1.93, abs=0.005)


@pytest.mark.realdata
@needs_real_data()
def test_coat_is_liked_from_four_stars_on(real: None) -> None:
    source = load("coat")
    assert {name: len(part) for name, part in source.contents.items()} == {
        "train": 1_905,
        "test": 769,
        "test_negative": 3_505,
    }
    assert 769 + 3_505 + source.dropped["test"] == 4_640
    three = load("coat", min_rating=3)
    assert sum(len(three.contents[part]) for part in ("test", "test_negative")) == 769 + 3_505
