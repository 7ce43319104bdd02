"""Tables of lists that somebody else made: how they are read, and what becomes of odd rows."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caged.data.ids import IdMap
from caged.errors import DataError
from caged.evaluation.foreign import collect as foreign_lists
from caged.evaluation.foreign import ordering
from caged.evaluation.foreign import scan as foreign
from caged.evaluation.foreign.collect import collect
from caged.evaluation.foreign.ordering import Entries, ordered
from caged.evaluation.foreign.row_lookup import RowLookup
from caged.evaluation.foreign.scan import Recommendations, scan

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

USERS, ITEMS = IdMap.of(range(5)), IdMap.of(range(10))


def read(recs, *, users=USERS, items=ITEMS, width=100, drop_seen=None):
    """{user id: item ids} and the counts."""
    scanned = scan(Recommendations.of(recs), users, items)
    user_ids, item_ids = IdMap.union([users, scanned.unknown_users]), IdMap.union([items, scanned.unknown_items])
    lists, counts = collect(scanned, user_ids, item_ids, width=width, drop_seen=drop_seen)
    named = {
        user: item_ids.external(lists.items[start:stop]).to_pylist()
        for user, start, stop in zip(
            user_ids.external(lists.users).to_pylist(), lists.offsets[:-1], lists.offsets[1:], strict=True
        )
    }
    return named, counts


def frame(rows, *names):
    return pd.DataFrame(rows, columns=["user_id", "item_id", *names])


def test_scores_descend_and_ties_go_to_the_smaller_row():
    rows = frame([(1, i, score) for i, score in enumerate((0.5, 0.9, 0.5, 0.9, 0.1))], "score")
    assert read(rows)[0] == {1: [1, 3, 0, 2, 4]}


def test_ranks_decide_whatever_the_scores_say():
    assert read(frame([(1, 4, 2, 0.9), (1, 5, 1, 0.1)], "rank", "score"))[0] == {1: [5, 4]}


def test_shared_ranks_go_by_score_then_row_and_are_counted():
    rows = frame([(1, 7, 1, 0.1), (1, 2, 1, 0.5), (1, 5, 2, 0.3), (1, 4, 2, 0.3)], "rank", "score")
    lists, counts = read(rows)
    assert lists == {1: [2, 7, 4, 5]}
    assert counts["duplicate_ranks"] == 2
    without_score = read(rows.drop(columns="score"))
    assert without_score[0] == {1: [2, 7, 4, 5]}


def test_gaps_are_closed_and_counted():
    rows = frame([(0, 1, 1), (0, 2, 4), (1, 1, 2), (1, 3, 3), (2, 5, 0), (2, 6, 1), (3, 8, 1)], "rank")
    lists, counts = read(rows)
    assert lists == {0: [1, 2], 1: [1, 3], 2: [5, 6], 3: [8]}
    assert counts["lists_with_rank_gaps"] == 2  # 1, 4 and 2, 3; counting from 0 is no gap
    assert counts["duplicate_ranks"] == 0


def test_a_repeated_pair_keeps_its_better_place():
    rows = frame([(0, 1, 0.2), (0, 2, 0.5), (0, 1, 0.9)], "score")
    lists, counts = read(rows)
    assert lists == {0: [1, 2]}
    assert counts["duplicate_rows"] == 1
    assert counts["rows"] == 3
    assert counts["rows_used"] == 2


def test_seen_items_are_kept_or_dropped():
    rows = frame([(0, 1, 1), (0, 2, 2), (0, 3, 3), (1, 2, 1)], "rank")

    def seen(users, items):
        return items == 2

    assert read(rows)[0] == {0: [1, 2, 3], 1: [2]}
    dropped, counts = read(rows, drop_seen=seen, width=2)
    assert dropped == {0: [1, 3]}  # later items move up, before the list is cut; user 1 has nothing left
    assert counts["seen_rows"] == 2


def test_lists_are_cut_to_what_is_needed():
    assert read(frame([(0, i, -i) for i in range(9)], "score"), width=3)[0] == {0: [0, 1, 2]}


def test_unknown_users_and_items_join():
    scanned = scan(Recommendations.of(frame([(0, 1, 1), (70, 99, 1), (70, 1, 2)], "rank")), USERS, ITEMS)
    assert scanned.unknown_users.values.to_pylist() == [70]
    assert scanned.unknown_items.values.to_pylist() == [99]
    assert read(frame([(0, 1, 1), (70, 99, 1), (70, 1, 2)], "rank"))[0] == {0: [1], 70: [99, 1]}


@pytest.mark.parametrize("names", [("rank",), ("score",), ("rank", "score")])
@pytest.mark.parametrize("seed", range(4))
def test_equals_a_literal_reading(seed, names, monkeypatch):
    """Random rows in random order: pieces and blocks of a few rows, read twice, give what a loop over users gives."""
    rng = np.random.default_rng(seed)
    count = 400
    table = frame(np.stack([rng.integers(0, 30, count) * 3, rng.integers(0, 12, count)], axis=1).tolist())
    table["rank"] = rng.integers(1, 8, count)
    table["score"] = rng.integers(0, 4, count) / 4 - 0.5
    table = table[["user_id", "item_id", *names]]
    users = IdMap.of(range(0, 60))  # the ids above are unknown
    monkeypatch.setattr(foreign, "TABLE_ROWS", 37)
    monkeypatch.setattr(foreign, "MOST_KEPT", 100)
    monkeypatch.setattr(foreign_lists, "BLOCK_ROWS", 50)
    monkeypatch.setattr(foreign_lists, "MOST_USERS", 4)
    monkeypatch.setattr(ordering, "LARGEST_PADDING", seed)  # 0: never side by side
    expected = {}
    for user, rows in table.groupby("user_id"):
        order = [(row.get("rank", 0), -row.get("score", 0), row["item_id"]) for _, row in rows.iterrows()]
        expected[user] = list(dict.fromkeys(int(item) for _, _, item in sorted(order)))
    lists, counts = read(table, users=users)
    assert lists == expected
    assert counts["rows"] == count
    assert counts["duplicate_rows"] == count - sum(map(len, expected.values()))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_scores_of_any_size_are_ordered(kind):
    scores = np.array([0.0, -0.0, np.inf, -np.inf, -1.5, 1e30, 1e-30, -1e-30], dtype=kind)
    rows = Entries(np.zeros(8, dtype=np.uint16), np.arange(8), None, scores)
    assert ordered(rows).items.tolist() == [2, 5, 6, 0, 1, 7, 4, 3]


def test_infinite_scores_stay_in_front_of_padding():
    """A list of one beside a list of three: the padding sorts like the worst score."""
    rows = frame([(0, 5, -np.inf), (0, 3, -np.inf), (0, 4, 1.0), (1, 2, -np.inf)], "score")
    assert read(rows)[0] == {0: [4, 3, 5], 1: [2]}


# ---------------------------------------------------------------- files and frames

ROWS = frame([(0, 3, 1, 0.5), (0, 1, 2, 0.25), (2, 9, 1, 1.0)], "rank", "score")
EXPECTED = {0: [3, 1], 2: [9]}


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".csv.gz"])
def test_files(tmp_path: Path, suffix):
    path = tmp_path / f"lists{suffix}"
    if suffix == ".parquet":
        ROWS.to_parquet(path)
    else:
        text = ROWS.to_csv(index=False, sep="\t" if ".tsv" in suffix else ",").encode()
        path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    assert read(path)[0] == EXPECTED
    assert read(str(path))[0] == EXPECTED
    assert Recommendations.of(path).name == "lists"


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, lambda rows: rows], ids=["pl", "pa", "pd"])
def test_frames(convert):
    assert read(convert(ROWS))[0] == EXPECTED


def test_text_ids_and_text_files_that_look_like_integers(tmp_path: Path):
    """A text file has no types: its ids are what the other side has."""
    path = tmp_path / "lists.csv"
    path.write_text("user_id,item_id,score\n2,10,1\n2,9,0.5\n")
    text = IdMap.of(["1", "2"]), IdMap.of(["9", "10"])
    assert read(path, users=text[0], items=text[1])[0] == {"2": ["10", "9"]}
    assert read(path, users=IdMap.of([1, 2]), items=IdMap.of([9, 10]))[0] == {2: [10, 9]}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (frame([(0, 1, np.nan)], "score"), "column 'score' is empty in data row 1; scores must be numbers"),
        (pa.table({"user_id": [0], "item_id": [1], "score": [float("nan")]}), "column 'score' is nan in data row 1"),
        (pa.table({"user_id": [0], "item_id": [1], "score": ["x"]}), "column 'score' is 'x', not a number"),
        (pa.table({"user_id": [0], "item_id": [1], "score": [True]}), "column 'score' has type bool; allowed are num"),
        (frame([(0, 1, 1.5)], "rank"), "column 'rank' is 1.5 in data row 1; ranks must be whole numbers"),
        (frame([(0, 1, -1)], "rank"), "column 'rank' is -1 in data row 1"),
        (
            pa.table({"user_id": [0, None], "item_id": [1, 1], "rank": [1, 2]}),
            "column 'user_id' is empty in data row 2",
        ),
        (frame([("a", 1, 1)], "rank"), "'user_id' holds text .such as 'a'. where train has integers .such as 0."),
        (frame([(0, "i", 1)], "rank"), "'item_id' holds text .such as 'i'. where train has integers"),
        (frame([(0, 1)]), "has neither 'score' nor 'rank', found: 'user_id', 'item_id'"),
        (
            pa.table({"users_id": [0], "item_id": [1], "rank": [1]}),
            r"has no column 'user_id', found: 'users_id', .*--list-user-column.*did you mean",
        ),
        (frame([], "rank").astype("int64"), "holds no recommendations"),
        (
            pd.DataFrame([[0, 1, 1, 1]], columns=["user_id", "item_id", "rank", "rank"]),
            "cannot be read|2 columns named",
        ),
        ([1, 2], "builtins.list is not a frame with the Arrow C stream interface"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(rows, sentence):
    with pytest.raises(DataError, match=sentence):
        read(rows)


def test_integers_where_train_has_text():
    with pytest.raises(DataError, match=r"'user_id' holds integers .such as 0. where train has text .such as 'a'."):
        read(ROWS, users=IdMap.of(["a", "b"]))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "lists.csv",
            "user_id,item_id,score\n0,1,nan\n",
            "'score' is 'nan' in data row 1|'score' is nan in data row 1",
        ),
        ("lists.csv", "user_id,item_id,score\n0,1,\n", "column 'score'"),
        ("lists.csv", "user_id,item_id,score\n0,,1\n", "column 'item_id' is empty in data row 1"),
        (
            "lists.csv",
            "user_id,item_id,score\nu0,1,1\n",
            "'user_id' holds text .such as 'u0'. where train has integers",
        ),
        ("lists.csv", "user_id,item_id,score\n", "holds no recommendations"),
        ("lists.csv", "", "is empty"),
        ("lists.txt", "0 1 2\n", "cannot hold lists, because .txt files have neither score nor rank"),
        ("lists.xyz", "", "unknown suffix"),
        ("lists.parquet", "no parquet", "not a readable Parquet file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name, content, sentence):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=sentence):
        read(tmp_path / name)


def test_no_file_and_a_folder(tmp_path: Path):
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "nothing.parquet")
    with pytest.raises(DataError, match="holds no files; give a file, or a folder of part files"):
        read(tmp_path)


def test_an_empty_parquet_file(tmp_path: Path):
    pq.write_table(pa.table({"user_id": pa.array([], pa.int64()), "item_id": [], "rank": []}), tmp_path / "l.parquet")
    with pytest.raises(DataError, match="holds no recommendations"):
        read(tmp_path / "l.parquet")


# ---------------------------------------------------------------- rows of identifiers


@pytest.mark.parametrize(
    "known",
    [[0, 1, 2], [5, 9, 70], [3, 10**12], ["a", "b", "z"], []],
    ids=["rows", "dense", "sparse", "text", "none"],
)
def test_lookup_equals_a_dictionary(known):
    other = ["q", "b"] if known and isinstance(known[0], str) else [7, 10**15, -3]
    lookup = RowLookup(IdMap.of(known) if known else IdMap.of([]))
    expected = {value: row for row, value in enumerate(known)}
    for batch in ([*known, *other], [*reversed(other), *known], other[:1]):
        codes = lookup.codes(pa.array(batch, pa.large_string() if isinstance(batch[0], str) else pa.int64()))
        for value in batch:
            expected.setdefault(value, len(expected))
        assert codes.tolist() == [expected[value] for value in batch]
