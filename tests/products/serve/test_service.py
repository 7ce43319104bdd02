"""One list comes the same way or another; its bytes do not tell which."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from caged.products.serve import lists, schemas
from caged.products.serve.answers import UnknownModelError
from caged.products.serve.requests import AskItem
from caged.products.serve.served import serve_folders
from caged.products.serve.service import Service
from caged.products.serve.settings import Settings
from tests.products.serve.exported import exported


@pytest.fixture(scope="module")
def artefact(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("service") / "graph"
    exported(finished_run, folder, with_price=False)
    return folder


@pytest.fixture
def service(artefact: Path) -> Service:
    return Service(serve_folders([artefact]), Settings())


@pytest.fixture
def runs(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is handed over to the threads."""
    found: list[Any] = []
    handed_over = service.gate.run
    monkeypatch.setattr(service.gate, "run", lambda work: found.append(work) or handed_over(work))
    return found


def test_the_loop_and_the_threads_give_the_same_list(
    service: Service, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = schemas.Recommend(user_id="u05", k=3, less_popular=0.5)
    at_once = asyncio.run(service.one(request))
    assert runs == []
    monkeypatch.setattr(lists, "QUICK_WORK", 0)
    assert asyncio.run(service.one(request)) == at_once
    assert len(runs) == 1
    assert service.inside == 0
    with pytest.raises(UnknownModelError, match="unknown model 'x'"):
        asyncio.run(service.one(schemas.Recommend(user_id="u05", model="x")))


def test_items_like_others_are_found_together(service: Service, runs: list[Any]) -> None:

    async def several() -> list[bytes]:
        asks = [AskItem(item, 3) for item in ("i01", "i02", "i03")]
        return await asyncio.gather(*(service.similar(None, ask, popularity=False) for ask in asks))

    together = asyncio.run(several())
    assert len(runs) == 1
    alone = [asyncio.run(service.similar(None, AskItem(item, 3), popularity=False)) for item in ("i01", "i02", "i03")]
    assert [json.loads(one)["item_id"] for one in together] == ["i01", "i02", "i03"]
    assert [ids(one) for one in together] == [ids(one) for one in alone]
    assert service.inside == 0


def ids(answer: bytes) -> list[str]:
    return [item["item_id"] for item in json.loads(answer)["items"]]
