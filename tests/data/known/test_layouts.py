"""Known datasets in each form in which they are found, and files that are none of them."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

import caged
from caged.data import Columns, load
from caged.data.source import dataset, item_titles
from caged.errors import DataError
from tests.data.known.written import coat_tables, pairs, put

RATINGS_DAT = "1::11::5::978300760\n1::12::3::978302109\n6040::3952::4::956703932\n"


def test_movielens_1m_in_both_forms_has_the_same_pairs_and_titles(root: Path) -> None:
    folder = root / "ml1m"
    titles = "11::Am\xe9lie (2001)::Comedy\n12::A::B\n3952::Contender, The (2000)::Drama\n"
    put(folder, ratings__dat=RATINGS_DAT, movies__dat=titles)
    public = dataset("ml-1m")
    assert public.to_arrow().to_pydict() == {
        "user_id": [0, 0, 6039],
        "item_id": [10, 11, 3951],
        "rating": [5.0, 3.0, 4.0],
        "timestamp": [978300760, 978302109, 956703932],
    }
    assert item_titles("ml-1m").to_pydict() == {
        "item_id": [10, 11, 3951],
        "title": ["Am\xe9lie (2001)", "A", "Contender, The (2000)"],
    }
    assert item_titles("ml-1m-caged").equals(item_titles("ml-1m"))
    stars = {"rating_lo": [5, 3, 4], "rating_hi": [5, 4, 4], "time_rank": [0, 1, 0], "caged_test": [True, False, True]}
    put(folder, interactions__parquet=pa.table({"user": [0, 0, 6039], "item": [10, 11, 3951], **stars}))
    prepared = dataset("ml-1m")
    assert prepared.fingerprint == public.fingerprint
    assert prepared.timestamp is None  # a rank within a user is no time
    assert prepared.columns["time_rank"].tolist() == [0, 1, 0]


def test_a_smallest_rating_takes_the_certain_pairs_and_counts_the_others(root: Path) -> None:
    stars = {"rating_lo": [5, 4, 4, 5, 1], "rating_hi": [5, 5, 4, 5, 5], "time_rank": [0] * 5, "caged_test": [True] * 5}
    put(root / "ml1m", interactions__parquet=pa.table({"user": [0, 0, 1, 1, 2], "item": [0, 1, 0, 1, 2], **stars}))
    source = load("ml-1m", min_rating=5)
    assert source.log is not None
    assert pairs(source.log.to_arrow()) == {(0, 0), (1, 1)}
    assert "2 further pairs may be rated 5 or more" in source.notes[-1]


def test_columns_of_a_known_dataset_can_be_named(root: Path) -> None:
    stars = {"rating_lo": [5, 4], "rating_hi": [5, 5], "time_rank": [7, 3], "caged_test": [True, False]}
    put(root / "ml1m", interactions__parquet=pa.table({"user": [0, 1], "item": [0, 1], **stars}))
    log = load("ml-1m", columns=Columns().named(timestamp="time_rank", rating="rating_hi")).log
    assert log is not None
    assert log.timestamp is not None
    assert log.timestamp.tolist() == [7, 3]
    assert log.rating is not None
    assert log.rating.tolist() == [5, 5]


def test_movielens_100k_and_latest_small_as_published(root: Path) -> None:
    put(root / "ml100k", u__data="196\t242\t3\t881250949\n186\t302\t3\t891717742\n", u__item="242|Kolya (1996)|x\n")
    assert pairs(dataset("ml-100k").to_arrow()) == {(196, 242), (186, 302)}
    assert item_titles("ml-100k").to_pylist() == [{"item_id": 242, "title": "Kolya (1996)"}]
    put(
        root / "ml_latest_small",
        ratings__csv="userId,movieId,rating,timestamp\n1,1,4.0,964982703\n2,193609,0.5,964981247\n",
        movies__csv__gz=b'movieId,title,genres\r\n1,"American President, The (1995)",Drama\r\n',
    )
    log = dataset("ml-latest-small")
    assert pairs(log.to_arrow()) == {(1, 1), (2, 193609)}
    assert log.rating is not None
    assert log.rating.tolist() == [4.0, 0.5]
    assert item_titles("ml-latest-small").to_pylist() == [{"item_id": 1, "title": "American President, The (1995)"}]


def test_lastfm_has_no_header_and_carriage_returns(root: Path) -> None:
    put(root / "lastfm", train__tsv__gz="424\t4076\t993\r\n1311\t1574\t957\r\n", test__tsv="424\t1574\t1\r\n")
    parts = load("lastfm").parts
    assert parts is not None
    assert pairs(parts["train"].to_arrow()) == {(424, 4076), (1311, 1574)}
    assert parts["train"].rating is not None
    assert parts["train"].rating.tolist() == [993, 957]
    assert parts["test"].item_count == 2


def test_coat_pairs_of_train_leave_test_are_counted_and_said(root: Path) -> None:
    """Rated 5 1 2 in train; in test 1 and 2 of the same pairs, and 3 and 4 of others."""
    put(root / "coat", **coat_tables())
    source = load("coat")
    assert source.parts is not None
    assert pairs(source.parts["train"].to_arrow()) == {(0, 0)}
    assert pairs(source.parts["test"].to_arrow()) == {(1, 0)}
    assert pairs(source.parts["test_negative"].to_arrow()) == {(0, 2)}
    assert source.parts["train"].item_count == 3
    assert source.dropped == {"test": 2}
    assert "2 of the test pairs are in train too and were taken out of test" in source.notes
    assert len(dataset("coat")) == 2  # what nobody liked is no interaction


def test_the_smallest_rating_says_what_is_liked_in_coat(root: Path) -> None:
    put(root / "coat", **coat_tables())
    lower = load("coat", min_rating=3).parts
    assert lower is not None
    assert pairs(lower["test"].to_arrow()) == {(0, 2), (1, 0)}
    assert "test_negative" not in lower  # nothing is left of it
    assert len(dataset("coat", min_rating=1)) == 5
    with pytest.raises(DataError, match=r"no train pair of .*coat is rated 6 or more; lower --min-rating"):
        load("coat", min_rating=6)


def test_kuairand_has_what_was_not_liked_beside_its_test(root: Path) -> None:
    texts = {"train__txt": "0 1 2\n1 3\n", "valid__txt": "0 4\n", "test__txt": "1 1\n", "test_negative__txt": "1 2 4\n"}
    put(root / "kuairand", **texts)
    source = load("kuairand")
    assert source.parts is not None
    assert list(source.parts) == ["train", "valid", "test", "test_negative"]
    assert pairs(source.parts["test_negative"].to_arrow()) == {(1, 2), (1, 4)}
    assert "shown_auc" in source.notes[0]
    assert len(dataset("kuairand")) == 5


def test_coat_as_matrices_is_the_same(root: Path, tmp_path: Path) -> None:
    put(root / "coat", train__ascii="5 1 0\n0 2 0\n", test__ascii="0 1 3 \n4 2 0\n")
    dense = load("coat")
    put(root / "coat", **coat_tables())
    tables = load("coat")
    assert {name: part.fingerprint for name, part in dense.contents.items()} == {
        name: part.fingerprint for name, part in tables.contents.items()
    }
    assert dense.dropped == {"test": 2}


def test_yelp_ood_has_two_tests_of_one_catalogue(root: Path) -> None:
    texts = {"train__txt": "0 1 2\n1 3\n", "valid__txt": "0 4\n", "test_id__txt": "1 5\n", "test_ood__txt": "7 9\n"}
    put(root / "yelp2018_ood", **texts)
    for catalogue, users, items in (("occurring", [0, 1, 7], [1, 2, 3, 4, 5, 9]), ("max_id", range(8), range(10))):
        source = load("yelp2018-ood", catalogue=catalogue)  # type: ignore[arg-type]
        assert source.parts is not None
        assert list(source.parts) == ["train", "valid", "test"]
        assert list(source.extra_tests) == ["test_ood"]
        for part in source.contents.values():
            assert part.user_ids.values.to_pylist() == list(users)
            assert part.item_ids.values.to_pylist() == list(items)
        assert pairs(source.parts["test"].to_arrow()) == {(1, 5)}
        assert pairs(source.extra_tests["test_ood"].to_arrow()) == {(7, 9)}
    assert "two tests" in source.notes[0]
    assert len(dataset("yelp2018-ood")) == 6


def test_the_pinterest_part_says_that_it_is_one(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(root / "caged_pinterest", train_users_0_37500__txt="0 1 2\n1 3\n", test_users_0_37500__txt="0 3\n")
    assert "is a part of its dataset: 37,501 of 55,186 users" in load("pinterest-caged").notes[0]
    with caplog.at_level(logging.WARNING):
        caged.dataset("pinterest-caged")
    assert "is a part of its dataset" in caplog.text


# ---------------------------------------------------------------- bad files


@pytest.mark.parametrize(
    ("folder", "files", "name", "message"),
    [
        (
            "lastfm",
            {"train__tsv": "user\titem\tplays\n1\t2\t3\n", "test__tsv": "1\t2\t3\n"},
            "lastfm",
            "train.tsv does not",
        ),
        ("lastfm", {"train__tsv": "1\t2\n", "test__tsv": "1\t2\t3\n"}, "lastfm", "train.tsv does not hold user_id"),
        ("lastfm", {"train__tsv": "", "test__tsv": "1\t2\t3\n"}, "lastfm", "train.tsv is empty"),
        ("ml1m", {"ratings__dat": "0::11::5::978300760\n"}, "ml-1m", "column 1 holds 0; identifiers start at 1"),
        ("ml1m", {"ratings__dat": "1::0::5::978300760\n"}, "ml-1m", "column 2 holds 0; identifiers start at 1"),
        ("ml1m", {"interactions__parquet": b"PAR1"}, "ml-1m", "not a readable Parquet file"),
        ("coat", {"train__ascii": "1 x\n", "test__ascii": "1 0\n"}, "coat", "train.ascii is no matrix of numbers"),
        ("coat", {"train__ascii": "1 2\n1\n", "test__ascii": "1 0\n"}, "coat", "train.ascii is no matrix of numbers"),
        ("coat", {"train__ascii": "0 0\n0 0\n", "test__ascii": "1 0\n0 1\n"}, "coat", "no interactions"),
    ],
)
def test_bad_files_give_a_sentence(
    root: Path, folder: str, files: dict[str, str | bytes], name: str, message: str
) -> None:
    put(root / folder, **files)
    with pytest.raises(DataError, match=message):
        load(name)


def test_only_text_splits_have_a_catalogue_up_to_the_largest_id(root: Path) -> None:
    put(root / "ml1m", ratings__dat=RATINGS_DAT)
    with pytest.raises(DataError, match=r"ratings\.dat cannot have a catalogue up to its largest id"):
        load("ml-1m", catalogue="max_id")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "lacks movies.dat"),
        ({"movies__dat": "x::Title::Genre\n"}, "without a number in front"),
        ({"movies__dat__gz": b""}, None),
    ],
)
def test_titles_that_are_not_there(root: Path, files: dict[str, str | bytes], message: str | None) -> None:
    put(root / "ml1m", ratings__dat=RATINGS_DAT, **files)
    if message is None:
        (root / "ml1m" / "movies.dat.gz").write_bytes(b"not gzip")
        message = r"cannot read the titles in .*movies\.dat\.gz"
    with pytest.raises(DataError, match=message):
        item_titles("ml-1m")


def test_a_dataset_without_titles_names_those_that_have_them(root: Path) -> None:
    put(root / "gowalla", train__txt="0 1 2\n1 3\n", test__txt="0 3\n")
    with pytest.raises(DataError, match=r"'gowalla' has no titles; .*: ml-1m, ml-100k, ml-latest-small, ml-1m-caged$"):
        item_titles("gowalla")
