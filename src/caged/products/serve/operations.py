"""The routes for whoever runs the server: is it alive, is it ready, what did it do, take the new model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import orjson
from fastapi import APIRouter, Response

from caged._version import __version__
from caged.errors import CagedError, RunError
from caged.products.serve import schemas
from caged.products.serve.answers import source, status_of
from caged.products.serve.metrics import CONTENT_TYPE, family
from caged.products.serve.routes import PROBLEMS
from caged.products.serve.service import Service


def operating_routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", response_model=schemas.State, summary="Is the process alive?")
    async def healthz() -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    @router.get("/readyz", response_model=schemas.State, summary="Can it answer now?", responses={503: PROBLEMS[503]})
    async def readyz() -> Response:
        if service.inside >= service.gate.room:
            return problem(503, "as many requests wait as may wait; try again in a second")
        return Response(b'{"status":"ready"}', media_type="application/json")

    @router.get("/metrics", summary="Counters for Prometheus", response_class=Response)
    async def metrics() -> Response:
        return Response("\n".join(_metric_lines(service)) + "\n", media_type=CONTENT_TYPE)

    @router.post(
        "/admin/swap",
        response_model=schemas.Source,
        summary="Load the folder of an artefact again",
        responses={**PROBLEMS, 409: {"model": schemas.Problem, "description": "Broken; the model of before stays."}},
    )
    async def swap(request: schemas.Swap | None = None) -> Response:
        served = service.pick(request.model if request else None)
        try:
            current = await asyncio.to_thread(served.swap)
        except RunError as error:
            return problem(409, f"the model of before stays: {error}")
        return Response(orjson.dumps(source(current)), media_type="application/json")

    return router


def problem(status: int, sentence: str) -> Response:
    headers = {"Retry-After": "1"} if status == 503 else None
    return Response(orjson.dumps({"error": sentence}), status, headers, media_type="application/json")


def refusal(error: CagedError) -> Response:
    return problem(status_of(error), str(error))


def went_wrong() -> Response:
    """The traceback is logged by the server, not sent."""
    return problem(500, "something went wrong inside the server; its log has the details")


def _metric_lines(service: Service) -> Iterator[str]:
    yield from service.metrics.lines()
    yield from family("caged_inside", "gauge", "Requests that run or wait.", [({}, service.inside)])
    every = service.served.values()
    versions = [({"model": one.name, "version": one.current.version, "caged": __version__}, 1.0) for one in every]
    yield from family("caged_model_info", "gauge", "What answers.", versions)
    since = [({"model": one.name}, one.current.since) for one in every]
    yield from family("caged_model_loaded_seconds", "gauge", "When it was loaded, since 1970.", since)
    swaps = [({"model": one.name}, float(one.swaps)) for one in every]
    yield from family("caged_swaps_total", "counter", "Models that took the place of another.", swaps)
    refused = [({"model": one.name}, float(one.refused)) for one in every]
    yield from family("caged_swaps_refused_total", "counter", "Artefacts that were refused.", refused)
