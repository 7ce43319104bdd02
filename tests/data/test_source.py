"""What `--data` takes."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caged.data import Columns, load
from caged.data.known.datasets import DATASETS
from caged.data.source import check_max_id
from caged.errors import DataError


def text_split(folder: Path, train: str = "0 5 2\n2 3\n", test: str = "0 3\n4 7\n", valid: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in {"train": train, "test": test, "valid": valid}.items():
        if text is not None:
            (folder / f"{part}.txt").write_text(text)
    return folder


def test_a_log_file_is_named_without_its_suffixes(tmp_path: Path) -> None:
    path = tmp_path / "my.log.csv"
    path.write_text("user_id,item_id\n1,2\n3,4\n")
    source = load(path)
    assert (source.name, source.path, source.parts) == ("my.log", path, None)
    assert source.log is not None
    assert len(source.log) == 2


def test_a_folder_of_part_files_is_one_log(tmp_path: Path) -> None:
    folder = tmp_path / "clicks"
    (folder / "day=1").mkdir(parents=True)
    for number, name in enumerate(["part-0.csv", "day=1/part-1.csv"]):
        (folder / name).write_text(f"user_id,item_id\n{number},{number + 5}\n9,5\n")
    (folder / "_SUCCESS").touch()
    source = load(folder)
    assert (source.name, source.parts) == ("clicks", None)
    assert source.log is not None
    assert source.log.to_arrow().to_pydict() == {"user_id": [0, 1, 9], "item_id": [5, 6, 5]}
    assert source.log.merged == 1
    with pytest.raises(DataError, match="catalogue 'occurring'"):
        load(folder, catalogue="max_id")
    (folder / "notes.md").touch()
    with pytest.raises(DataError, match=r"has no train and no test file, found: .*the part files of one log"):
        load(folder)


def test_what_has_no_largest_id_is_known_without_reading_it(tmp_path: Path) -> None:
    refused = {name for name in DATASETS if refuses_max_id(name)}
    assert refused == {"ml-1m", "ml-100k", "ml-latest-small", "coat", "lastfm"}
    for name in ("log.csv", "log.txt"):
        (tmp_path / name).touch()
        assert refuses_max_id(str(tmp_path / name))
    assert refuses_max_id(tmp_path)  # a folder of part files, or of parts in another form
    assert not refuses_max_id(text_split(tmp_path / "set"))
    assert not refuses_max_id(tmp_path / "nothing")  # that is said elsewhere


def refuses_max_id(source: object) -> bool:
    try:
        check_max_id(str(source))
    except DataError:
        return True
    return False


def test_the_parts_of_a_folder_share_the_catalogue_of_all(tmp_path: Path) -> None:
    source = load(str(text_split(tmp_path / "set.1", valid="2 2 9\n")))
    assert source.name == "set.1"
    assert source.log is None
    assert source.parts is not None
    assert list(source.parts) == ["train", "valid", "test"]
    for part in source.parts.values():
        assert part.user_ids.values.to_pylist() == [0, 2, 4]
        assert part.item_ids.values.to_pylist() == [2, 3, 5, 7, 9]
    assert source.parts["test"].to_arrow().to_pydict() == {"user_id": [0, 4], "item_id": [3, 7]}
    assert source.parts["train"].user_degrees.tolist() == [2, 1, 0]  # user 4 occurs in test only


def test_a_folder_may_say_what_was_shown_and_not_liked(tmp_path: Path) -> None:
    folder = text_split(tmp_path / "set")
    (folder / "test_negative.txt").write_text("0 7\n2 5 9\n")
    for catalogue in ("occurring", "max_id"):
        source = load(folder, catalogue=catalogue)  # type: ignore[arg-type]
        assert source.parts is not None
        assert list(source.parts) == ["train", "test", "test_negative"]
        assert source.parts["test_negative"].to_arrow().to_pydict() == {"user_id": [0, 2, 2], "item_id": [7, 5, 9]}
        assert source.parts["train"].item_ids == source.parts["test_negative"].item_ids
        assert list(source.positives) == ["train", "test"]


def test_beside_what_was_not_liked_the_source_of_test_pairs_is_kept_and_no_rating_is_too_low(tmp_path: Path) -> None:
    columns = {"user_id": [1, 2], "item_id": [5, 6], "rating": [5, 4]}
    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    pq.write_table(pa.table({**columns, "item_id": [6, 5], "source": ["shop", "chance"]}), tmp_path / "test.parquet")
    (tmp_path / "test_negative.csv").write_text("user_id,item_id,rating,source\n1,7,2,chance\n3,5,1,chance\n")
    parts = load(tmp_path, min_rating=4).parts
    assert parts is not None
    assert parts["test"].columns["source"].tolist() == ["shop", "chance"]
    assert parts["test_negative"].columns["source"].tolist() == ["chance", "chance"]
    assert not parts["train"].columns


def test_a_folder_may_say_what_was_not_liked_before_the_test(tmp_path: Path) -> None:
    columns = {"user_id": [1, 2], "item_id": [5, 6], "rating": [5, 4], "source": ["shop", "chance"]}
    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    pq.write_table(pa.table({**columns, "item_id": [6, 5]}), tmp_path / "test.parquet")
    (tmp_path / "valid_negative.csv").write_text("user_id,item_id,rating,source\n1,6,2,chance\n2,7,1,chance\n")
    source = load(tmp_path, min_rating=4)
    assert source.parts is not None
    assert list(source.positives) == ["train", "test"]
    assert len(source.parts["valid_negative"]) == 2
    assert source.parts["train"].columns["source"].tolist() == ["shop", "chance"]
    assert not source.parts["test"].columns  # nothing is to be known about it


def test_max_id_counts_gaps_and_users_without_items(tmp_path: Path) -> None:
    source = load(text_split(tmp_path / "set", train="0 5 2\n1 3\n8\n"), catalogue="max_id")
    assert source.parts is not None
    for part in source.parts.values():
        assert part.user_ids.values.to_pylist() == list(range(9))
        assert part.item_ids.values.to_pylist() == list(range(8))
    assert source.parts["test"].items.tolist() == [3, 7]


def test_max_id_of_a_single_text_file(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("0 5\n3 1\n")
    log = load(tmp_path / "log.txt", catalogue="max_id").log
    assert log is not None
    assert (log.user_count, log.item_count) == (4, 6)


def test_parts_may_be_tables_of_different_formats(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user_id": [10, 9], "item_id": [1, 2], "source": ["a", "b"]}), tmp_path / "train.parquet")
    (tmp_path / "test.csv").write_text("user_id,item_id,source\n9,1,c\n")
    parts = load(tmp_path, columns=Columns(keep=("source",))).parts
    assert parts is not None
    assert parts["train"].user_ids.values.to_pylist() == [9, 10]
    assert parts["train"].user_ids == parts["test"].user_ids
    assert parts["train"].columns["source"].tolist() == ["b", "a"]


def test_one_user_is_too_few_only_over_all_parts(tmp_path: Path) -> None:
    parts = load(text_split(tmp_path / "fine", train="0 1 2\n", test="0 3\n1 2\n")).parts
    assert parts is not None
    with pytest.raises(DataError, match="has 1 user"):
        load(text_split(tmp_path / "one", train="0 1 2\n", test="0 2 3\n"))


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("user_id,item_id\n5.0,1\n6.0,2\n", "'user_id' of test holds text .such as '6.0'. where train has integers"),
        ("user_id,item_id\n5,1.0\n6,2.0\n", "'item_id' of test holds text .such as '2.0'. where train has integers"),
        ("user_id,item_id\n105,1\n106,2\n", "test has no user in common with train .such as 105 here, 5 there."),
        ("user_id,item_id\n5,11\n6,12\n", "test has no item in common with train .such as 11 here, 1 there."),
    ],
)
def test_parts_whose_ids_do_not_match_are_refused(tmp_path: Path, test: str, message: str) -> None:
    (tmp_path / "train.csv").write_text("user_id,item_id\n5,1\n6,2\n7,3\n")
    (tmp_path / "test.csv").write_text(test)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_integers_and_text_match_where_all_are_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("user_id,item_id\n5,1\n6,2\n")
    (tmp_path / "test.csv").write_text("user_id,item_id\n5,2\nx,1\n")
    with pytest.raises(DataError, match="or read all ids as text with --ids text"):
        load(tmp_path)
    parts = load(tmp_path, columns=Columns(ids="text")).parts
    assert parts is not None
    assert parts["train"].user_ids.values.to_pylist() == ["5", "6", "x"]
    assert parts["test"].to_arrow()["user_id"].to_pylist() == ["5", "x"]


def test_little_in_common_is_a_note_with_the_shares(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("user_id,item_id\n1,1\n2,2\n3,3\n")
    (tmp_path / "test.csv").write_text("user_id,item_id\n1,2\n5,2\n6,2\n7,3\n8,3\n")
    (users,) = load(tmp_path).notes
    assert users.startswith("only 1 of the 5 users of test (20.0%) are in train")


def test_an_item_table_of_another_type_is_refused(tmp_path: Path) -> None:
    folder = text_split(tmp_path / "set")
    pq.write_table(pa.table({"item_id": ["5", "x"]}), folder / "items.parquet")
    with pytest.raises(DataError, match="'item_id' of the item table holds text"):
        load(folder)


def test_released_datasets_lie_below_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text_split(tmp_path / DATASETS["ml-1m-caged"].folder)
    monkeypatch.setenv("CAGED_DATA", str(tmp_path))
    source = load("ml-1m-caged")
    assert (source.name, source.path) == ("ml-1m-caged", tmp_path / "caged_movie")
    with pytest.raises(DataError, match=r"'gowalla' is not in CAGED_DATA=.*there is no folder"):
        load("gowalla")
    monkeypatch.delenv("CAGED_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataError, match=r"CAGED_DATA is not set: .*export CAGED_DATA="):
        load("ml-1m-caged")


def test_a_name_that_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"unknown dataset 'gowala'; known: .*did you mean 'gowalla'"):
        load("gowala")
    with pytest.raises(DataError, match=r"log\.csv does not exist"):
        load("log.csv")
    with pytest.raises(DataError, match=r"gowalla does not exist"):
        load(Path("gowalla"))


def test_the_current_folder_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(text_split(tmp_path / "here"))
    assert load(".").name == "here"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "no train and no test file, found: nothing"),
        (["train.txt", "notes.md"], r"no test file, found: notes\.md, train\.txt"),
        (["train.txt", "train.txt.gz", "test.txt"], r"both train\.txt and train\.txt\.gz"),
    ],
)
def test_incomplete_folders(tmp_path: Path, files: list[str], message: str) -> None:
    for name in files:
        (tmp_path / name).write_text("0 1\n")
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_max_id_is_for_plain_text_splits_only(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user_id,item_id\n1,2\n3,4\n")
    with pytest.raises(DataError, match=r"log\.csv cannot have .*LightGCN text"):
        load(tmp_path / "log.csv", catalogue="max_id")
    folder = text_split(tmp_path / "set")
    with pytest.raises(DataError, match="smallest rating"):
        load(folder, catalogue="max_id", min_rating=3)
    with pytest.raises(DataError, match="unknown catalogue 'max'"):
        load(folder, catalogue="max")  # type: ignore[arg-type]
    text_split(folder, test="0 2147483647\n")
    with pytest.raises(DataError, match=r"largest id in .* is 2147483647"):
        load(folder, catalogue="max_id")


def released_data() -> Path | None:
    beside = Path(__file__).parents[3] / "shared" / "data"
    candidates = [Path(folder) for folder in [os.environ.get("CAGED_DATA"), beside] if folder]
    return next((folder for folder in candidates if (folder / DATASETS["ml-1m-caged"].folder).is_dir()), None)


@pytest.mark.realdata
@pytest.mark.skipif(released_data() is None, reason="released splits are not here")
def test_the_released_movielens_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAGED_DATA", str(released_data()))
    for catalogue, item_count in (("occurring", 3_706), ("max_id", 3_952)):
        parts = load("ml-1m-caged", catalogue=catalogue).parts  # type: ignore[arg-type]
        assert parts is not None
        assert {name: len(part) for name, part in parts.items()} == {"train": 797_758, "test": 202_451}
        assert {(part.user_count, part.item_count) for part in parts.values()} == {(6_040, item_count)}


def market_folder(tmp_path):
    """Parts as a simulated market has them: marks in train only, and an item that nobody has clicked."""
    folder = tmp_path / "market"
    folder.mkdir()
    marks = ["shop", "explore", "shop", "explore"]
    train = pa.table({"user_id": ["a", "a", "b", "b"], "item_id": ["x", "y", "x", "z"], "source": marks})
    pq.write_table(train, folder / "train.parquet")
    pq.write_table(pa.table({"user_id": ["a"], "item_id": ["z"]}), folder / "test.parquet")
    pq.write_table(pa.table({"item_id": ["w", "x", "y", "z"], "title": list("WXYZ")}), folder / "items.parquet")
    return folder


def test_the_item_table_of_a_folder_joins_the_catalogue(tmp_path):
    parts = load(market_folder(tmp_path)).parts
    assert parts["train"].item_ids.values.to_pylist() == ["w", "x", "y", "z"]
    assert parts["train"].item_degrees.tolist() == [0, 2, 1, 1]


def test_a_broken_item_table_is_one_sentence(tmp_path):
    folder = market_folder(tmp_path)
    (folder / "items.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match="is not an item table"):
        load(folder)


def test_a_test_part_needs_no_marks(tmp_path):
    parts = load(market_folder(tmp_path), columns=Columns(keep=("source",))).parts
    assert parts["train"].columns["source"].tolist() == ["shop", "explore", "shop", "explore"]
    assert not parts["test"].columns
