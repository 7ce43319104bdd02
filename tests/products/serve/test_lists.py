"""Which questions the event loop answers itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from caged.products.serve import lists, schemas
from caged.products.serve.lists import (
    QUICK_IDS,
    ItemQuestion,
    Question,
    batch_text,
    list_texts,
    similar_texts,
)
from caged.products.serve.requests import AskItem
from caged.products.serve.served import Served
from caged.products.serve.texts import items_json
from tests.cli.invoke import train
from tests.products.serve.exported import exported


@pytest.fixture(scope="module")
def graph(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("lists") / "graph"
    exported(finished_run, folder, with_price=False)
    return Served("graph", folder)


def question(served: Served, **request: Any) -> Question:
    return Question(served.current, schemas.Recommend(**request))


def test_a_list_from_few_items_and_few_ids_is_quick(graph: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert question(graph, user_id="u05").is_quick
    assert question(graph, history=["i01"] * (QUICK_IDS - 1), exclude=["i02"]).is_quick
    assert not question(graph, history=["i01"] * QUICK_IDS, exclude=["i02"]).is_quick
    assert not question(graph, user_id="u05", candidates=["i01"] * (QUICK_IDS + 1)).is_quick
    monkeypatch.setattr(lists, "QUICK_WORK", 40 * graph.engine.model.manifest.width - 1)
    assert not question(graph, user_id="u05").is_quick


def test_scores_that_are_no_product_of_vectors_are_not_quick(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", method="ease")
    exported(tmp_path / "run", tmp_path / "ease", with_price=False)
    assert not question(Served("ease", tmp_path / "ease"), user_id="u05").is_quick


def test_questions_to_several_models_keep_their_order(graph: Served) -> None:
    other = Served("other", graph.folder)
    asked = [question(one, user_id=user) for one, user in ((graph, "u05"), (other, "u05"), (graph, "nobody"))]
    first, second, refused = list_texts(asked)
    assert isinstance(first, bytes)
    assert first.replace(b'"graph"', b'"other"') == second
    assert "user 'nobody' is not known" in str(refused)
    assert batch_text(graph.current, []).endswith(b'"answers":[]}')


def test_items_like_others_keep_their_order(graph: Served) -> None:
    other = Served("other", graph.folder)
    asks = [(graph, "i05"), (other, "i05"), (graph, "nothing"), (graph, "i07")]
    found = similar_texts([ItemQuestion(one.current, AskItem(item, 3), popularity=True) for one, item in asks])
    assert "item 'nothing' is not known" in str(found[2])
    for (one, item), text in zip(asks, found, strict=True):
        if isinstance(text, bytes):
            answer, near = json.loads(text), one.engine.similar(item, 3)
            assert (answer["model"], answer["item_id"]) == (one.name, item)
            wanted = items_json(one.engine.model, near.items, near.scores, popularity=True)
            assert answer["items"] == [like | {"score": pytest.approx(like["score"], abs=1e-6)} for like in wanted]
    assert sum(isinstance(text, bytes) for text in found) == 3
