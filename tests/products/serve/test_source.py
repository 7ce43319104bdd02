"""Artefacts of saved models: what `Recommender.save` wrote is served like a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caged
from caged.evaluation.adjust.choice import Adjustment
from caged.evaluation.adjust.of_scores import adjusted
from caged.evaluation.evaluate import evaluate
from caged.products.serve import Ask, Engine
from tests.conftest import Pair
from tests.products.serve.exported import exported


@pytest.fixture(scope="module")
def model(pairs: list[Pair]) -> caged.LightGCN:
    log = pa.table({"user_id": [user for user, _ in pairs], "item_id": [item for _, item in pairs]})
    return caged.LightGCN(embedding_size=4, epochs=2, batch_size=128, seed=3, device="cpu").fit(log)


@pytest.fixture(scope="module")
def saved(model: caged.LightGCN, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = model.save(tmp_path_factory.mktemp("saved") / "model")
    pq.write_table(
        pa.table({"item_id": ["i03", "i01", "other"], "title": ["Three", None, "X"]}), folder / "items.parquet"
    )
    return folder


@pytest.fixture(scope="module")
def engine(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return exported(saved, tmp_path_factory.mktemp("served") / "artefact")


def test_a_saved_model_answers_as_it_recommends(model: caged.LightGCN, engine: Engine) -> None:
    wanted = model.recommend(["u05"], 7)
    found = engine.recommend(Ask(user_id="u05", k=7))
    assert [engine.model.items[row] for row in found.items] == wanted["item_id"].to_pylist()
    np.testing.assert_allclose(found.scores, wanted["score"].to_numpy(), atol=1e-6)


def test_titles_come_from_the_item_table_beside_the_model(engine: Engine) -> None:
    titles = dict(zip(engine.model.items.values.to_pylist(), engine.model.item_table["title"].to_pylist(), strict=True))
    assert {item: title for item, title in titles.items() if title is not None} == {"i03": "Three"}


def test_the_manifest_says_what_a_saved_model_knows(model: caged.LightGCN, engine: Engine) -> None:
    manifest = engine.model.manifest
    assert (manifest.method, manifest.origin["seed"], manifest.origin["dataset"]) == ("lightgcn", 3, None)
    assert manifest.origin["fingerprints"]["train"] == model.artefact.train.fingerprint
    assert set(manifest.price["curve"]) == {"valid"}
    assert [point["strength"] for point in manifest.price["curve"]["valid"]][-1] == 1.0


def test_the_price_is_measured_on_what_was_held_back(model: caged.LightGCN, engine: Engine) -> None:
    fitted = model.artefact
    point = engine.model.manifest.price["curve"]["valid"][10]
    scorer = adjusted(fitted.method.scorer(), fitted.train, Adjustment("degree", point["strength"]))
    assert fitted.valid is not None
    measured = evaluate(scorer, train=fitted.train, valid=None, relevant=fitted.valid, device=fitted.device)
    assert point["metrics"]["recall@20"] == pytest.approx(measured.report.metrics["recall@20"])


def test_an_adjusted_model_keeps_its_knob(model: caged.LightGCN, tmp_path: Path) -> None:
    weaker = model.adjusted(strength=0.4)
    engine = exported(weaker.save(tmp_path / "model"), tmp_path / "artefact")
    assert (engine.model.manifest.method, engine.model.manifest.less_popular) == ("lightgcn adjusted", 0.4)
    assert engine.model.manifest.price["curve"]
    found = engine.recommend(Ask(user_id="u05", k=5))
    assert [engine.model.items[row] for row in found.items] == weaker.recommend(["u05"], 5)["item_id"].to_pylist()


def test_what_was_trained_without_validation_has_no_price(pairs: list[Pair], tmp_path: Path) -> None:
    log = pa.table({"user_id": [user for user, _ in pairs], "item_id": [item for _, item in pairs]})
    folder = caged.Recommender("mostpop", device="cpu").fit(log).save(tmp_path / "model")
    engine = exported(folder, tmp_path / "artefact")
    assert engine.model.manifest.price == {}
    assert "title" not in engine.model.item_table.column_names
