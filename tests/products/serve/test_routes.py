"""Every answer over HTTP is the engine's, and the engine's is that of `caged recommend`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastapi import FastAPI

import caged
from caged.products.serve import Ask
from caged.products.serve.export import export_artefact
from caged.products.serve.schemas import About, Explained, ItemPage, Recommended, RecommendedBatch, SimilarItems
from caged.products.serve.source import source_of
from caged.runs import explain as explain_run
from caged.runs.artefact import load_artefact
from caged.runs.environment import resolve_device
from tests.cli.invoke import train
from tests.products.serve.asking import app_of, get, post, refused
from tests.products.serve.exported import exported


@pytest.fixture(scope="module")
def app(finished_run: Path, log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """A graph model, item-item weights, and neighbours."""
    folder = tmp_path_factory.mktemp("http")
    exported(finished_run, folder / "graph")
    for method in ("ease", "itemknn", "mostpop", "softmax"):
        small = ("--set", "train.epochs=2", "--set", "method.embedding_size=4") if method == "softmax" else ()
        train(log_csv, folder / f"run-{method}", *small, method=method)
        exported(folder / f"run-{method}", folder / method, with_price=False)
    return app_of(*(folder / name for name in ("graph", "ease", "itemknn", "mostpop", "softmax")))


def engine_of(app: FastAPI, name: str = "graph") -> Any:
    return app.state.service.served[name].engine


def test_a_list_is_that_of_recommend(app: FastAPI, finished_run: Path) -> None:
    wanted = caged.load(finished_run, device="cpu").recommend(["u05"], 7)
    found = post(app, "/recommend", {"user_id": "u05", "k": 7})
    assert found.status_code == 200
    answer = Recommended.model_validate(found.json())
    assert [item.item_id for item in answer.items] == wanted["item_id"].to_pylist()
    assert [item.score for item in answer.items] == pytest.approx(wanted["score"].to_pylist(), abs=1e-6)
    assert (answer.model, answer.less_popular, answer.unknown_items) == ("graph", 0.0, [])


def test_a_list_for_a_new_person_is_that_of_recommend_for(app: FastAPI, finished_run: Path) -> None:
    history = ["i03", "i17", "i00"]
    wanted = caged.load(finished_run, device="cpu").adjusted(strength=0.4).recommend_for({"new": history}, 9)
    found = post(app, "/recommend", {"history": [*history, "nothing"], "k": 9, "less_popular": 0.4}).json()
    assert [item["item_id"] for item in found["items"]] == wanted["item_id"].to_pylist()
    assert [item["score"] for item in found["items"]] == pytest.approx(wanted["score"].to_pylist(), abs=1e-6)
    assert found["unknown_items"] == ["nothing"]
    assert found["less_popular"] == 0.4


@pytest.mark.parametrize("model", ["graph", "ease", "itemknn"])
@pytest.mark.parametrize(
    "request_",
    [
        {"user_id": "u05"},
        {"user_id": "u05", "exclude_seen": False, "k": 40},
        {"history": ["i01", "i02"], "k": 3, "exclude": ["i03"]},
        {"user_id": "u09", "candidates": ["i01", "i05", "i09", "nothing"], "less_popular": 1},
    ],
)
def test_alone_or_in_a_batch_it_is_the_answer_of_the_engine(app: FastAPI, model: str, request_: dict[str, Any]) -> None:
    engine = engine_of(app, model)
    wanted = engine.recommend(Ask(**request_))
    names = [engine.model.items[row] for row in wanted.items]
    alone = post(app, "/recommend", {**request_, "model": model}).json()
    batch = post(app, "/recommend/batch", {"requests": [{"user_id": "u01"}, request_], "model": model})
    RecommendedBatch.model_validate(batch.json())
    for found in (alone, batch.json()["answers"][1]):
        assert [item["item_id"] for item in found["items"]] == names
        assert [item["score"] for item in found["items"]] == pytest.approx(wanted.scores.tolist(), abs=1e-6)


def test_in_a_batch_only_those_are_refused_that_cannot_be_answered(app: FastAPI) -> None:
    requests = [{"user_id": "nobody"}, {"user_id": "u01", "k": 2}, {"history": ["x"]}, {"user_id": "u01", "k": 10**6}]
    found = post(app, "/recommend/batch", {"requests": requests}).json()["answers"]
    assert [answer.get("status", 200) for answer in found] == [404, 200, 422, 422]
    assert found[1]["items"] == post(app, "/recommend", requests[1]).json()["items"]
    assert post(app, "/recommend/batch", {"requests": []}).json()["answers"] == []


def test_popularity_is_told_on_request(app: FastAPI) -> None:
    plain = post(app, "/recommend", {"user_id": "u05", "k": 3}).json()["items"][0]
    assert set(plain) == {"item_id", "score"}
    told = post(app, "/recommend", {"user_id": "u05", "k": 40, "exclude_seen": False, "popularity": True}).json()
    by_rank = sorted(told["items"], key=lambda item: item["popularity_rank"])
    assert [item["popularity_rank"] for item in by_rank] == list(range(1, 41))
    counts = [item["popularity"] for item in by_rank]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == engine_of(app).model.degrees.sum()


def test_similar_items_are_those_of_the_model(app: FastAPI, finished_run: Path) -> None:
    wanted = caged.load(finished_run, device="cpu").similar_items(["i03"], 5)
    found = get(app, "/similar/i03", k=5)
    SimilarItems.model_validate(found.json())
    assert [item["item_id"] for item in found.json()["items"]] == wanted["similar_item_id"].to_pylist()
    refused(get(app, "/similar/nothing"), 404, "item 'nothing' is not known")
    refused(get(app, "/similar/i03", k=10**5), 422, "allowed are 1..1000")


@pytest.mark.parametrize("model", ["graph", "softmax"])
def test_contributions_are_those_of_explain_and_add_up(app: FastAPI, finished_run: Path, model: str) -> None:
    run = finished_run if model == "graph" else engine_of(app, model).model.folder.with_name("run-softmax")
    fitted = load_artefact(run, resolve_device("cpu"))
    wanted = explain_run.explain(fitted, "u05", "i07")
    found = get(app, "/explain", user_id="u05", item="i07", k=100, model=model).json()
    Explained.model_validate(found)
    assert [one["item_id"] for one in found["reasons"]] == [one.item_id for one in wanted.items]
    contributions = [one["contribution"] for one in found["reasons"]]
    assert contributions == pytest.approx([one.contribution for one in wanted.items], abs=1e-6)
    assert found["score"] == pytest.approx(wanted.score, abs=1e-6)
    assert found["rest"] == pytest.approx(wanted.own, abs=1e-6)
    assert "the rest is what training learned" in found["note"]


@pytest.mark.parametrize("model", ["graph", "ease", "itemknn", "softmax"])
def test_a_score_from_a_history_is_the_sum_of_its_contributions(app: FastAPI, model: str) -> None:
    found = get(app, "/explain", history=["i01", "i02", "i09"], item="i03", model=model).json()
    assert found["available"]
    assert found["history"] == 3
    assert sum(one["contribution"] for one in found["reasons"]) == pytest.approx(found["score"], abs=1e-6)
    assert found["rest"] == pytest.approx(0, abs=1e-6)
    assert found["note"] == ""


def test_what_cannot_be_explained_says_so(app: FastAPI) -> None:
    found = get(app, "/explain", user_id="u05", item="i03", model="mostpop").json()
    assert (found["available"], found["reasons"], found["rest"]) == (False, [], None)
    assert "not a sum over the history: mostpop has no way" in found["note"]
    refused(get(app, "/explain", history=["i01"], item="i03", model="mostpop"), 422, "mostpop has no way")
    refused(get(app, "/explain", item="i03"), 422, "either user_id or history")
    refused(get(app, "/explain", user_id="u05"), 422, "item is missing")
    refused(get(app, "/explain", user_id="u05", item="nothing"), 404, "item 'nothing' is not known")


def test_items_come_in_pages(app: FastAPI) -> None:
    pages = [get(app, "/items", offset=offset, limit=15).json() for offset in (0, 15, 30, 45)]
    for page in pages:
        ItemPage.model_validate(page)
    assert [(page["total"], len(page["items"])) for page in pages] == [(40, 15), (40, 15), (40, 10), (40, 0)]
    ranks = [item["popularity_rank"] for page in pages for item in page["items"]]
    assert ranks == list(range(1, 41))
    assert [item["item_id"] for item in get(app, "/items", q="I07").json()["items"]] == ["i07"]
    assert get(app, "/items", offset=2**53 - 1).json()["items"] == []
    refused(get(app, "/items", offset=2**64), 422, "offset is '18446744073709551616'")


def test_about_has_the_price_of_the_knob(app: FastAPI) -> None:
    found = get(app, "/about").json()
    About.model_validate(found)
    assert found["default"] == "graph"
    assert [one["model"] for one in found["models"]] == ["graph", "ease", "itemknn", "mostpop", "softmax"]
    graph = found["models"][0]
    assert [point["strength"] for point in graph["price"]["curve"]["valid"]][:2] == [0.0, 0.01]
    assert graph["audit"]["metrics"]["recall@20"] > 0
    assert graph["new_people"]
    assert "mostpop has no way" in found["models"][3]["new_people_note"]
    assert found["limits"]["k"] == 1000


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        ({}, 422, "either user_id or history"),
        ({"user_id": "nobody"}, 404, "user 'nobody' is not known"),
        ({"user_id": 1.5}, 422, "user_id is 1.5"),
        ({"user_id": "u05", "k": "many"}, 422, "k is 'many'"),
        ({"user_id": "u05", "k": 1001}, 422, "allowed are 1..1000"),
        ({"user_id": "u05", "less_popular": 2}, 422, "less_popular is 2"),
        ({"user_id": "u05", "less_popular": "0.5"}, 422, "less_popular is '0.5'"),
        ({"user_id": "u05", "colour": "red"}, 422, "colour is unknown"),
        ({"user_id": "u05", "filters": {"colour": "red"}}, 422, "unknown attribute 'colour'"),
        ({"user_id": "u05", "filters": {"colour": None}}, 422, "filters.colour is None"),
        ({"user_id": "u05", "history": ["i01"]}, 422, "either user_id or history"),
        ({"history": ["x", "y"]}, 422, "knows none of the items"),
        ({"history": ["i01"] * 10_001}, 422, "at most 10,000"),
        ({"user_id": "u05", "model": "other"}, 404, "unknown model 'other'; known: ease, graph"),
        ([], 422, "the body is a list"),
    ],
)
def test_a_bad_request_gets_one_sentence(app: FastAPI, request_: Any, status: int, words: str) -> None:
    refused(post(app, "/recommend", request_), status, words)


def test_too_large_a_batch_is_refused(app: FastAPI) -> None:
    refused(post(app, "/recommend/batch", {"requests": [{"user_id": "u05"}] * 1001}), 422, "at most 1,000")


# ---------------------------------------------------------------- filters


KINDS = ("shoes", "hats", "coats", "gloves")


@pytest.fixture(scope="module")
def shop(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """Forty items with attributes: a kind each, two of three in stock."""
    folder = tmp_path_factory.mktemp("shop") / "shop"
    numbers = range(40)
    about = pa.table(
        {
            "item_id": [f"i{number:02d}" for number in numbers],
            "category": [KINDS[number % 4] for number in numbers],
            "in_stock": [number % 3 > 0 for number in numbers],
        }
    )
    source = source_of(finished_run, resolve_device("cpu"))
    export_artefact(replace(source, item_table=about), folder)
    return app_of(folder)


@pytest.mark.parametrize("less_popular", [0.0, 0.5])
def test_filters_are_applied_before_ranking_so_that_k_items_come_back(shop: FastAPI, less_popular: float) -> None:
    asked = {"user_id": "u05", "exclude_seen": False, "less_popular": less_popular}
    everything = post(shop, "/recommend", {**asked, "k": 40}).json()["items"]
    assert len(everything) == 40
    for filters, kept in (
        ({"category": ["shoes"], "in_stock": True}, lambda number: number % 4 == 0 and number % 3 > 0),
        ({"category": ["shoes", "hats"]}, lambda number: number % 4 in (0, 1)),
        ({"in_stock": False}, lambda number: number % 3 == 0),
    ):
        wanted = [item for item in everything if kept(int(item["item_id"][1:]))][:5]
        found = post(shop, "/recommend", {**asked, "k": 5, "filters": filters}).json()["items"]
        assert [item["item_id"] for item in found] == [item["item_id"] for item in wanted]
        assert [item["score"] for item in found] == pytest.approx([item["score"] for item in wanted], abs=1e-6)
        assert len(found) == 5


def test_a_filter_that_keeps_too_few_gives_what_there_is(shop: FastAPI) -> None:
    few = {"category": "gloves", "in_stock": True}
    asked = {"user_id": "u05", "k": 20, "exclude_seen": False, "filters": few}
    assert len(post(shop, "/recommend", asked).json()["items"]) == 6
    assert post(shop, "/recommend", {**asked, "filters": {"category": "socks"}}).json()["items"] == []
    refused(post(shop, "/recommend", {**asked, "filters": {"size": 5}}), 422, "unknown attribute 'size'")
