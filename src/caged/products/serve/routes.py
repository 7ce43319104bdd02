"""The routes that answer about people and items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import orjson
from fastapi import APIRouter, Query, Response

from caged.errors import CagedError, unknown
from caged.products.serve import schemas
from caged.products.serve.answers import (
    UnknownModelError,
    about_json,
    answer_json,
    explanation_json,
    items_json,
    refusal_json,
    source,
)
from caged.products.serve.catalogue import Catalogue
from caged.products.serve.explanation import explain
from caged.products.serve.gate import Gate
from caged.products.serve.metrics import RequestMetrics
from caged.products.serve.requests import Ask
from caged.products.serve.served import Current, Served
from caged.products.serve.settings import Settings
from caged.products.serve.together import Together

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": schemas.Problem, "description": "The body is no JSON."},
    401: {"model": schemas.Problem, "description": "The API key is missing or wrong."},
    404: {"model": schemas.Problem, "description": "Nobody or nothing of that name is known."},
    413: {"model": schemas.Problem, "description": "The body is too long."},
    422: {"model": schemas.Problem, "description": "The request cannot be answered; one sentence says why."},
    503: {
        "model": schemas.Problem,
        "description": "Too many requests at once; Retry-After says when to come back.",
        "headers": {"Retry-After": {"schema": {"type": "integer"}}},
    },
}

ModelName = Annotated[str | None, Query(description="Name of the artefact; left out: the first one.")]


class Question(NamedTuple):
    """A list that somebody wants, from the model that was there when the request came."""

    current: Current
    request: schemas.OnePerson


@dataclass(frozen=True, eq=False)
class Service:
    """What all routes share."""

    served: Mapping[str, Served]
    settings: Settings
    gate: Gate
    lists: Together[Question, bytes]
    metrics: RequestMetrics

    @property
    def inside(self) -> int:
        """Requests that run or wait."""
        return self.gate.inside + self.lists.waiting

    def pick(self, name: str | None) -> Served:
        if name is None:
            return next(iter(self.served.values()))
        if name not in self.served:
            raise UnknownModelError(unknown("model", name, self.served))
        return self.served[name]

    async def answer(self, model: str | None, work: Callable[[Current], dict[str, Any]]) -> Response:
        """In a thread of the gate, from the model as it is now; the JSON is made there, too."""
        current = self.pick(model).current
        body = await self.gate.run(lambda: orjson.dumps({**source(current), **work(current)}))
        return Response(body, media_type="application/json")


def answering_routes(service: Service) -> APIRouter:
    router = APIRouter(responses=PROBLEMS)

    @router.post("/recommend", response_model=schemas.Recommended, summary="A list for one person")
    async def recommend(request: schemas.Recommend) -> Response:
        body = await service.lists.ask(Question(service.pick(request.model).current, request))
        return Response(body, media_type="application/json")

    @router.post("/recommend/batch", response_model=schemas.RecommendedBatch, summary="Lists for many people")
    async def recommend_batch(request: schemas.Batch) -> Response:
        return await service.answer(request.model, lambda current: _batch(current, request))

    @router.get("/similar/{item:path}", response_model=schemas.SimilarItems, summary="Items like this one")
    async def similar(
        item: str,
        k: Annotated[int, Query(ge=1)] = 10,
        popularity: bool = False,
        model: ModelName = None,
    ) -> Response:
        def work(current: Current) -> dict[str, Any]:
            found = current.engine.similar(item, k)
            shown = items_json(current.engine, found.items, found.scores, popularity=popularity)
            return {"item_id": item, "items": shown}

        return await service.answer(model, work)

    @router.get("/explain", response_model=schemas.Explained, summary="What of the history counts for an item")
    async def explain_item(
        item: Annotated[str, Query(description="The item whose score is taken apart.")],
        user_id: Annotated[str | None, Query(description="Somebody who was in training.")] = None,
        history: Annotated[list[str] | None, Query(description="Or what somebody new has had; repeat it.")] = None,
        k: Annotated[int, Query(ge=1, description="Items of the history to name.")] = 10,
        model: ModelName = None,
    ) -> Response:
        def work(current: Current) -> dict[str, Any]:
            found = explain(current.engine, Ask(user_id=user_id, history=history, k=k), item)
            return explanation_json(current.engine, found, k)

        return await service.answer(model, work)

    @router.get("/items", response_model=schemas.ItemPage, summary="Search the catalogue")
    async def items(
        q: Annotated[str, Query(description="A piece of the title, or the beginning of the id.")] = "",
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1)] = 20,
        model: ModelName = None,
    ) -> Response:
        def work(current: Current) -> dict[str, Any]:
            page = Catalogue(current.engine.model).search(q, offset, limit)
            shown = items_json(current.engine, page.items, popularity=True)
            return {"total": page.total, "offset": offset, "items": shown}

        return await service.answer(model, work)

    @router.get("/about", response_model=schemas.About, summary="What answers, and what the knob costs")
    async def about() -> Response:
        models = [about_json(one.current) for one in service.served.values()]
        limits = vars(service.settings.limits)
        body = {"default": service.pick(None).name, "models": models, "limits": limits}
        return Response(orjson.dumps(body), media_type="application/json")

    return router


def lists_json(questions: Sequence[Question]) -> list[bytes | Exception]:
    """The bodies of answers, or why there is none; questions to one model in one batch."""
    found: dict[int, bytes | Exception] = {}
    for current in {id(one.current): one.current for one in questions}.values():
        places = [place for place, one in enumerate(questions) if one.current is current]
        answers = _answers(current, [questions[place].request for place in places])
        for place, answer in zip(places, answers, strict=True):
            if isinstance(answer, CagedError):
                found[place] = answer
            else:
                found[place] = orjson.dumps({**source(current), **answer})
    return [found[place] for place in range(len(questions))]


def _batch(current: Current, request: schemas.Batch) -> dict[str, Any]:
    found = _answers(current, request.requests)
    return {"answers": [refusal_json(one) if isinstance(one, CagedError) else one for one in found]}


def _answers(current: Current, requests: Sequence[schemas.OnePerson]) -> list[dict[str, Any] | CagedError]:
    engine = current.engine
    asks = [one.ask() for one in requests]
    return [
        answer
        if isinstance(answer, CagedError)
        else answer_json(engine, ask, answer, titles=one.titles, popularity=one.popularity)
        for one, ask, answer in zip(requests, asks, engine.recommend_batch(asks), strict=True)
    ]
