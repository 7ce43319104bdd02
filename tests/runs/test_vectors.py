"""Vectors for use elsewhere: their dot products are the scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import caged
from caged.errors import ConfigError, RunError
from caged.runs.vectors import write_vectors
from tests.conftest import ITEMS, USERS, Pair

TINY = {"embedding_size": 4, "epochs": 2, "batch_size": 128, "device": "cpu"}
WITH_VECTORS: dict[str, dict[str, Any]] = {
    "LightGCN": TINY,
    "CAGED": TINY,
    "MACR": {**TINY, "c_candidates": (0.0, 2.0)},
    "AdvDrop": {**TINY, "adv_steps": 2},
    "APDA": TINY,
    "MostPopular": {"device": "cpu"},
}


def log(pairs: list[Pair], integers: bool = False) -> caged.Interactions:
    if integers:
        return caged.Interactions.from_ids([int(user[1:]) + 7 for user, _ in pairs], [item for _, item in pairs])
    return caged.Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs])


@pytest.mark.parametrize("name", WITH_VECTORS)
def test_dot_products_are_the_scores(name: str, pairs: list[Pair]) -> None:
    model = getattr(caged, name)(**WITH_VECTORS[name]).fit(caged.split(log(pairs)))
    vectors = model.vectors()
    assert (len(vectors.user_ids), len(vectors.item_ids)) == (USERS, ITEMS)
    scores = vectors.users @ vectors.items.T
    user_place = {user: place for place, user in enumerate(vectors.user_ids.to_pylist())}
    item_place = {item: place for place, item in enumerate(vectors.item_ids.to_pylist())}
    for row in model.recommend(["u41", "u03"], k=10).to_pylist():
        assert scores[user_place[row["user_id"]], item_place[row["item_id"]]] == pytest.approx(row["score"], abs=1e-5)


@pytest.mark.parametrize("integers", [True, False])
def test_round_trip_through_files(integers: bool, pairs: list[Pair], tmp_path: Path) -> None:
    model = caged.LightGCN(**TINY).fit(caged.split(log(pairs, integers)))
    vectors = model.vectors()
    write_vectors(vectors, tmp_path / "vectors", {"method": "lightgcn"})
    users, items = (pq.read_table(tmp_path / "vectors" / f"{kind}.parquet") for kind in ("users", "items"))
    assert users["user_id"].to_pylist() == model.artefact.train.user_ids.values.to_pylist()
    assert users.column_names + items.column_names == ["user_id", "vector", "item_id", "vector"]
    user = users["user_id"].to_pylist()[11]
    table = model.recommend([user], k=ITEMS, exclude_seen=False)
    scores = np.stack(items["vector"].to_numpy()) @ np.array(users["vector"][11].as_py(), dtype=np.float32)
    best = np.argsort(-scores, kind="stable")
    assert [items["item_id"][int(place)].as_py() for place in best] == table["item_id"].to_pylist()
    assert scores[best].tolist() == pytest.approx(table["score"].to_pylist(), abs=1e-6)
    manifest = json.loads((tmp_path / "vectors" / "vectors.json").read_text())
    assert (manifest["users"], manifest["items"], manifest["width"]) == (USERS, ITEMS, 4)
    with pytest.raises(RunError, match="is not empty"):
        write_vectors(vectors, tmp_path / "vectors", {})


def test_the_models_own_are_not_handed_out(pairs: list[Pair]) -> None:
    model = caged.LightGCN(**TINY).fit(caged.split(log(pairs)))
    before = model.recommend("u03", k=3)
    model.vectors().users[:] = 0
    assert model.recommend("u03", k=3).equals(before)
    assert repr(model.vectors()) == f"Vectors({USERS} users, {ITEMS} items, 4 numbers each)"


@pytest.mark.parametrize("name", ["EASE", "ItemKNN"])
def test_methods_without_vectors_say_so(name: str, pairs: list[Pair]) -> None:
    model = getattr(caged, name)(device="cpu").fit(log(pairs))
    with pytest.raises(ConfigError, match=f"{name.lower()} has no vectors: its scores are no dot products"):
        model.vectors()
