"""Lists as anybody writes them: names, nesting, formats and folders."""

import gzip
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from caged.data.ids import IdMap
from caged.errors import DataError
from caged.evaluation.foreign.collect import collect
from caged.evaluation.foreign.list_columns import ListColumns
from caged.evaluation.foreign.scan import Recommendations, scan
from tests.evaluation.foreign.libraries import LIBRARIES, LISTS, ROWS

USERS, ITEMS = IdMap.of(range(5)), IdMap.of(range(10))
USERS_AS_TEXT, ITEMS_AS_TEXT = (IdMap.of([str(id_) for id_ in range(count)]) for count in (5, 10))
ORDERS = {user: [item for item, _ in row] for user, row in LISTS.items()}
FRAME = pd.DataFrame(ROWS, columns=["user_id", "item_id", "score", "rank"])


def read(recs, users=USERS, items=ITEMS, **names):
    """{user: items in order} and the notes."""
    scanned = scan(Recommendations.of(recs, ListColumns(**names)), users, items)
    lists, _ = collect(scanned, users, items, width=100)
    bounds = zip(lists.users, lists.offsets[:-1], lists.offsets[1:], strict=True)
    return {int(user): lists.items[start:stop].tolist() for user, start, stop in bounds}, scanned.notes


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_is_read_as_it_writes(library, tmp_path):
    ids = {"users": USERS_AS_TEXT, "items": ITEMS_AS_TEXT} if library == "Cornac" else {}
    assert read(LIBRARIES[library](tmp_path), **ids)[0] == ORDERS


def test_a_tag_of_one_word_and_a_compressed_run(tmp_path):
    lines = "".join(f"{u} Q0 {i} {r} {s} ours\n" for u, i, s, r in ROWS)
    (tmp_path / "ours.res.gz").write_bytes(gzip.compress(lines.encode()))
    assert read(tmp_path / "ours.res.gz")[0] == ORDERS


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("renamed", "said"),
    [
        ({"score": "prediction"}, "'prediction' as the score"),
        ({"score": "rating"}, "'rating' as the score"),
        ({"score": "est"}, "'est' as the score"),
        ({"score": "relevance"}, "'relevance' as the score"),
        ({"user_id": "userId", "item_id": "Item"}, "'userId' as the user, 'Item' as the item"),
    ],
)
def test_well_known_names_are_taken_with_a_note(renamed, said):
    lists, (note,) = read(FRAME.drop(columns="rank").rename(columns=renamed))
    assert lists == ORDERS
    assert said in note


def test_a_position_is_a_rank():
    lists, (note,) = read(FRAME.drop(columns="score").rename(columns={"rank": "position"}))
    assert lists == ORDERS
    assert "'position' as the rank" in note


def test_usual_names_need_no_note_and_win_over_well_known_ones():
    assert read(FRAME.assign(rating=-FRAME["score"], uid=0)) == (ORDERS, ())


def test_who_names_a_score_or_a_rank_reads_it_alone():
    odd = FRAME.assign(rank=-FRAME["rank"] + 9, mine=FRAME["score"])
    assert read(odd, score="mine")[0] == ORDERS
    assert read(odd, rank="rank")[0] == {user: row[::-1] for user, row in ORDERS.items()}


def test_lists_and_logs_may_be_named_differently():
    frame = FRAME.rename(columns={"user_id": "reader", "item_id": "book"})
    assert read(frame, user="client", item="product", list_user="reader", list_item="book") == (ORDERS, ())
    with pytest.raises(DataError, match=r"has no column 'client'.*--list-user-column"):
        read(frame, user="client", item="product")


def test_two_spellings_of_one_name_are_refused():
    with pytest.raises(DataError, match="'userID', 'UserId', which could be the same thing; name the right one"):
        read(FRAME.rename(columns={"user_id": "userID"}).assign(UserId=1))


# ---------------------------------------------------------------- nested lists


def test_lists_of_items_and_scores_side_by_side():
    nested = pa.table(
        {
            "user_id": list(LISTS),
            "item_id": [[item for item, _ in reversed(row)] for row in LISTS.values()],
            "score": [[score for _, score in reversed(row)] for row in LISTS.values()],
        }
    )
    assert read(nested)[0] == ORDERS
    with pytest.raises(DataError, match="column 'score' is not as long as the lists in 'item_id'"):
        read(nested.set_column(2, "score", pa.array([[1.0], [1.0], [1.0]])))


def test_the_places_of_a_list_are_its_order_where_nothing_else_is():
    nested = pa.table({"user_id": [0, 1, 2, 4], "recs": [[3, 1], None, [], [9, 0, 4]]})
    assert read(nested)[0] == {0: [3, 1], 4: [9, 0, 4]}


def test_a_nested_list_under_any_name():
    nested = pa.table({"user_id": list(LISTS), "shelf": list(ORDERS.values())})
    assert read(nested, list_item="shelf")[0] == ORDERS
    with pytest.raises(DataError, match="has no column 'item_id', found: 'user_id', 'shelf'"):
        read(nested)


# ---------------------------------------------------------------- formats and folders


@pytest.mark.parametrize("suffix", ["feather", "arrow", "jsonl", "ndjson", "json"])
def test_feather_and_json_lines(suffix, tmp_path):
    path = tmp_path / f"recs.{suffix}"
    if suffix in ("feather", "arrow"):
        pyarrow.feather.write_feather(FRAME, path)
    else:
        FRAME.to_json(path, orient="records", lines=True)
    assert read(path) == (ORDERS, ())


@pytest.mark.parametrize("name", ["recs.feather", "recs.jsonl", "recs.npz", "recs.run"])
def test_damaged_files_are_one_sentence(name, tmp_path):
    (tmp_path / name).write_bytes(b"no such thing\n1 2\n")
    with pytest.raises(DataError, match=re.escape(str(tmp_path / name))):
        read(tmp_path / name)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / name)


def test_a_folder_of_part_files(tmp_path):
    for number, (_, part) in enumerate(FRAME.groupby("user_id")):
        place = tmp_path / f"day={number}"
        place.mkdir()
        part.to_csv(place / f"part-{number}.csv", index=False)
    (tmp_path / "_SUCCESS").touch()
    assert read(tmp_path) == (ORDERS, ())
    (tmp_path / "readme.md").write_text("hello")
    with pytest.raises(DataError, match=r"is not a folder of part files, found: .*readme\.md"):
        read(tmp_path)


def test_the_folder_of_a_run_points_at_its_lists(tmp_path):
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "recommendations.parquet")
    with pytest.raises(DataError, match=r"folder of a run; give the file with the lists, .*recommendations.parquet"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"ids": np.zeros((2, 3), int)}, "one array of item ids"),
        ({"ids": np.zeros((2, 3), int), "scores": np.zeros((2, 2))}, "one array of item ids"),
        ({"ids": np.zeros((2, 3), int), "s": np.zeros((2, 3)), "u": np.zeros(3, int)}, "3 user ids for 2 rows"),
    ],
)
def test_arrays_that_are_no_lists(arrays, sentence, tmp_path):
    np.savez(tmp_path / "recs.npz", **arrays)
    with pytest.raises(DataError, match=sentence):
        read(tmp_path / "recs.npz")


def test_text_ids_without_a_header(tmp_path):
    (tmp_path / "recs.tsv").write_text("u1\ti2\t0.5\nu1\ti1\t0.75\n")
    lists, (note,) = read(tmp_path / "recs.tsv", IdMap.of(["u1"]), IdMap.of(["i1", "i2"]))
    assert lists == {0: [0, 1]}
    assert "has no header line" in note
