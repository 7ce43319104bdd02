"""The routes that answer about people and items."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Response

from caged.products.serve import schemas
from caged.products.serve.answers import about_json, explanation_json
from caged.products.serve.catalogue import Catalogue
from caged.products.serve.explanation import explain
from caged.products.serve.requests import Ask, AskItem
from caged.products.serve.served import Current
from caged.products.serve.service import Service
from caged.products.serve.texts import items_json

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

LARGEST = 2**53 - 1  # whole number that every reader of JSON knows

ModelName = Annotated[str | None, Query(description="Name of the artefact; left out: the first one.")]


def answering_routes(service: Service) -> APIRouter:
    router = APIRouter(responses=PROBLEMS)

    @router.post("/recommend", response_model=schemas.Recommended, summary="A list for one person")
    async def recommend(request: schemas.Recommend) -> Response:
        return _json(await service.one(request))

    @router.post("/recommend/batch", response_model=schemas.RecommendedBatch, summary="Lists for many people")
    async def recommend_batch(request: schemas.Batch) -> Response:
        return _json(await service.many(request))

    @router.get("/similar/{item:path}", response_model=schemas.SimilarItems, summary="Items like this one")
    async def similar(
        item: str,
        k: Annotated[int, Query(ge=1)] = 10,
        popularity: bool = False,
        model: ModelName = None,
    ) -> Response:
        return _json(await service.similar(model, AskItem(item, k), popularity=popularity))

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

        return _json(await service.other(model, work))

    @router.get("/items", response_model=schemas.ItemPage, summary="Search the catalogue")
    async def items(
        q: Annotated[str, Query(description="A piece of the title, or the beginning of the id.")] = "",
        offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
        limit: Annotated[int, Query(ge=1)] = 20,
        model: ModelName = None,
    ) -> Response:
        def work(current: Current) -> dict[str, Any]:
            page = Catalogue(current.engine.model).search(q, offset, limit)
            shown = items_json(current.engine.model, page.items, popularity=True)
            return {"total": page.total, "offset": offset, "items": shown}

        return _json(await service.other(model, work))

    @router.get("/about", response_model=schemas.About, summary="What answers, and what the knob costs")
    async def about() -> Response:
        models = [about_json(one.current) for one in service.served.values()]
        limits = vars(service.settings.limits)
        body = {"default": service.pick(None).name, "models": models, "limits": limits}
        return _json(orjson.dumps(body))

    return router


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")
