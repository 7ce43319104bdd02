"""Diversity by vectors: derived by hand, against loops over pairs, where vectors are missing or wrong."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from caged.data.ids import IdMap
from caged.data.readers.columns import Columns
from caged.data.vector_files import NamedVectors, write_vectors
from caged.errors import ConfigError, DataError
from caged.evaluation import item_vectors
from caged.evaluation.basis import Basis
from caged.evaluation.groups import grouping
from caged.evaluation.intervals import intervals
from caged.evaluation.item_vectors import ItemVectors, read_item_vectors
from caged.evaluation.measure import measure
from caged.evaluation.metrics import MetricKey
from tests.evaluation.worlds import World, random_world, toy_chosen, toy_groups, toy_world

KEY = "intra_list_diversity@3"


def frame(vectors, first: int = 0) -> pa.Table:
    return pa.table({"item_id": range(first, first + len(vectors)), "vector": vectors})


def listed(items: list[int], vectors, k: int = 3) -> float:
    world = World(1, 6, {0: {5}}, {}, {}, {0: items})
    chosen = grouping(item_vectors=frame(vectors))
    return measure(world.lists, world.grouped(chosen), metrics=[f"intra_list_diversity@{k}"]).metrics[
        f"intra_list_diversity@{k}"
    ]


# ---------------------------------------------------------------- by hand


def test_the_toy():
    """i0 to i2 point right, i3 up and right (c = 1/sqrt 2), i4 to i6 up, i7 to i9 left; i10 has no vector.

    u0 (3 4 6) 1 - (2c + 1)/3, u1 (2 4) 1, u2 (8 3 9) 1 - (1 - 2c)/3, u3 (4 2 6) 1 - 1/3, u5 (0 3) 1 - c.
    """
    c = 1 / math.sqrt(2)
    expected = [1 - (2 * c + 1) / 3, 1, 1 - (1 - 2 * c) / 3, 2 / 3, math.nan, 1 - c]
    report = measure(toy_world().lists, toy_world().grouped(toy_chosen()), (3,))
    np.testing.assert_allclose(report.per_user[KEY], expected, rtol=0, atol=1e-7)
    assert report.metrics[KEY] == pytest.approx(np.nanmean(expected), abs=1e-7)
    assert report.users_per_metric[KEY] == 5
    assert [key for key in report.metrics if key.startswith("intra_list")] == [KEY, f"{KEY}/genre"]


@pytest.mark.parametrize(
    ("vectors", "diversity"),
    [
        ([[1, 0], [3, 0], [0.1, 0]], 0.0),  # lengths do not count
        ([[1, 0], [-5, 0]], 2.0),
        ([[1, 0, 0], [0, 2, 0], [0, 0, 3]], 1.0),
        ([[1e30, 0], [0, 1e-30], [1e30, 1e30]], 1 - 2 / math.sqrt(2) / 3),
        ([[1, 0], [0, 0], [0, 1]], 1.0),  # zeros have no direction
        ([[1, 0], [0, 0], [0, 0]], math.nan),
    ],
)
def test_extremes(vectors, diversity):
    assert listed([0, 1, 2], np.array(vectors, dtype=float).tolist()) == pytest.approx(diversity, abs=1e-6, nan_ok=True)


def test_only_the_first_k_count():
    vectors = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert [listed([0, 1, 2], vectors, k) for k in (1, 2, 3)] == pytest.approx([math.nan, 0.0, 2 / 3], nan_ok=True)


# ---------------------------------------------------------------- pair by pair


@pytest.mark.parametrize("at_once", [1, 1 << 20])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_a_loop_over_pairs_gives(seed, at_once, monkeypatch):
    monkeypatch.setattr(item_vectors, "NUMBERS_AT_ONCE", at_once)
    rng = np.random.default_rng(seed)
    world = random_world(rng)
    vectors = rng.normal(size=(world.item_count, 5)).astype(np.float32)
    there = rng.permutation(world.item_count)[: world.item_count * 3 // 4]
    table = pa.table({"item_id": there, "vector": vectors[there].tolist()})
    keys = [f"intra_list_diversity@{k}" for k in (2, 7)]
    report = measure(world.lists, world.grouped(grouping(item_vectors=table)), metrics=keys)
    for key, k in zip(keys, (2, 7), strict=True):
        for row, user in enumerate(report.users.tolist()):
            known = [vectors[item].astype(float) for item in world.items.get(user, [])[:k] if item in there]
            cosines = [a @ b / math.sqrt((a @ a) * (b @ b)) for a, b in combinations(known, 2)]
            expected = 1 - np.mean(cosines) if cosines else math.nan
            assert report.per_user[key][row] == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_it_has_an_interval():
    rng = np.random.default_rng(0)
    world = random_world(rng, user_count=80)
    chosen = grouping(item_vectors=frame(rng.normal(size=(world.item_count, 4)).tolist()))
    report = measure(world.lists, world.grouped(chosen), (5,))
    found = intervals(report)["intra_list_diversity@5"]
    assert found.low < report.metrics["intra_list_diversity@5"] < found.high


# ---------------------------------------------------------------- where it exists


def test_without_vectors_there_is_no_such_key():
    report = measure(toy_world().lists, toy_world().grouped(toy_groups()), (3,))
    assert KEY not in report.metrics
    assert MetricKey.parse(KEY) == KEY
    with pytest.raises(ConfigError, match="rests on vectors of the items, and there are none; give them"):
        measure(toy_world().lists, toy_world().reference, metrics=[KEY])


def test_what_is_missing_or_unknown_is_told():
    train = toy_world().reference.train
    assert grouping(item_vectors=frame([[1.0]] * 12)).of(train).notes == ()
    assert grouping(item_vectors=frame([[1.0]] * 8 + [[0.0]] + [[1.0]] * 4, first=2)).of(train).notes == (
        "the frame of item vectors: 3 of its 13 items occur in no log and no list: left out.",
        "vectors: 3 of the 12 items have none, or one of zeros: left out of intra_list_diversity.",
    )


# ---------------------------------------------------------------- files, frames and their checksums


def test_files_and_frames_say_the_same_in_any_order(tmp_path: Path):
    ids, vectors = [3, 1, 2], np.array([[1, 2], [3, 4], [5, 6.5]], dtype=np.float32)
    files = [tmp_path / f"items{suffix}" for suffix in (".parquet", ".safetensors")]
    for file in files:
        write_vectors(file, "item_id", NamedVectors(pa.array(ids), vectors))
    frames = [
        pd.DataFrame({"item_id": ids[::-1], "vector": list(vectors[::-1])}),
        pd.DataFrame({"item_id": ids, "x": vectors[:, 0], "y": vectors[:, 1]}),
    ]
    found = [read_item_vectors(source, Columns()) for source in (*files, str(files[0]), *frames)]
    assert all(one.ids == IdMap.of([1, 2, 3]) for one in found)
    assert all(one.vectors.tolist() == [[3, 4], [5, 6.5], [1, 2]] for one in found)
    assert len({one.checksum for one in found}) == 1
    assert read_item_vectors(files[0], Columns().reading_ids("text")).ids == IdMap.of(["1", "2", "3"])


def test_a_checksum_knows_ids_and_numbers_apart():
    numbers = np.arange(6, dtype=np.float32)
    different = [
        ItemVectors("", IdMap.of([1, 2, 3]), numbers.reshape(3, 2)),
        ItemVectors("", IdMap.of([1, 2, 4]), numbers.reshape(3, 2)),
        ItemVectors("", IdMap.of([1, 2, 3]), numbers[::-1].reshape(3, 2)),
        ItemVectors("", IdMap.of([1, 2]), numbers.reshape(2, 3)),
    ]
    assert len({one.checksum for one in different}) == len(different)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (frame([[1.0]] * 3, first=90), "no item in common with the logs"),
        (pa.table({"item_id": ["a"], "vector": [[1.0]]}), "holds text"),
        (pa.table({"item_id": [1, 1], "vector": [[1.0], [2.0]]}), "names an id twice"),
        (pa.table({"item_id": [1], "vector": [["a"]]}), "a vector is a list of numbers"),
        (pa.table({"item_id": [1], "vector": [0.5]}), "a vector is a list of numbers"),
        (pa.table({"item_id": [1], "vector": [[math.inf]]}), "infinite or none"),
        (pa.table({"item_id": pa.array([], pa.int64()), "vector": pa.array([], pa.list_(pa.float32()))}), "0 ids"),
        (pd.DataFrame(), "has no columns"),
        ([[1.0, 2.0]], "is not a frame"),
    ],
)
def test_bad_vectors_are_one_sentence(source, words):
    with pytest.raises(DataError, match=words):
        grouping(item_vectors=source).of(toy_world().reference.train)


# ---------------------------------------------------------------- what comparisons rest on


def test_a_basis_knows_the_vectors():
    counts = {"users_relevant_without_list": 0}

    def basis(vectors=None) -> Basis:
        return Basis.of(toy_world().grouped(grouping(item_vectors=vectors)), counts)

    plain, one, other = basis(), basis(frame([[1.0]] * 12)), basis(frame([[2.0]] * 12))
    assert "vectors" not in plain.to_json()
    assert Basis.from_json(one.to_json()) == one
    assert plain.unlike(one) == one.unlike(plain) == one.unlike(one) == []
    (unlike,) = one.unlike(other)
    assert unlike.sentence == "the vectors of the items differ"
    concerned = [KEY, f"{KEY}/genre", "recall@3", "miscalibration@3/genre"]
    assert [unlike.concerns(MetricKey.parse(key)) for key in concerned] == [True, False, False, False]
