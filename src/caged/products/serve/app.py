"""The application: routes, what every request passes, and a sentence for whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from caged._version import __version__
from caged.arguments import described
from caged.errors import CagedError
from caged.products.serve.explorer.routes import PUBLIC_PATHS, add_explorer
from caged.products.serve.guard import Guard, Receive, Scope, Send
from caged.products.serve.operations import operating_routes, problem, refusal, went_wrong
from caged.products.serve.routes import answering_routes
from caged.products.serve.served import Served
from caged.products.serve.service import Service
from caged.products.serve.settings import Settings
from caged.products.serve.short_way import ShortWay

logger = logging.getLogger("caged")
NO_JSON = "the body is no JSON in UTF-8; see /openapi.json for what can be asked"
UNION_MEMBERS = {"str", "int", "float", "bool", "constrained-float", "constrained-str", "constrained-int"}


class Application(FastAPI):
    """Routes, with the guard before all of them, and a short way for the requests that come all the time."""

    def __init__(self, service: Service, **options: Any) -> None:
        super().__init__(**options)
        self.state.service = service
        self._guard = Guard(ShortWay(service, super().__call__), service.settings, service.metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)


def create_app(
    served: Mapping[str, Served], settings: Settings | None = None, *, explorer: bool = False
) -> Application:
    """Answers from `served`; the first is what requests mean that name no model. `explorer` adds its page."""
    settings = settings or Settings()
    if explorer:
        settings = replace(settings, public_paths=(*settings.public_paths, *PUBLIC_PATHS))
    service = Service(served, settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        service.gate.close()

    app = Application(
        service,
        title="caged",
        version=__version__,
        summary="Recommendations for known and new people, with a knob against bestsellers.",
        docs_url=None,  # these pages load their scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(answering_routes(service))
    app.include_router(operating_routes(service))
    if explorer:
        add_explorer(app, service)
    app.add_exception_handler(CagedError, _caged_error)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _inside)
    return app


def _caged_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CagedError)
    return refusal(error)


def _not_valid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return problem(400 if first["type"] == "json_invalid" else 422, _sentence(first))


def _sentence(first: Mapping[str, Any]) -> str:
    """What pydantic says about a value, with its place and the value itself."""
    place = [str(part) for part in first["loc"][1:] if str(part) not in UNION_MEMBERS]
    where = ".".join(place) or "the body"
    said = str(first["msg"]).rstrip(".")
    said = said[:1].lower() + said[1:]
    if first["type"] == "missing":
        return f"{where} is missing; send it"
    if first["type"] == "json_invalid":
        return NO_JSON
    if first["type"] == "extra_forbidden":
        return f"{where} is unknown; see /openapi.json for what can be asked"
    if isinstance(first.get("input"), bytes):  # not read as JSON: curl, for one, calls what it sends a form
        return "the body is not said to be JSON; send the header Content-Type: application/json"
    return f"{where} is {described(first.get('input'))}; {said}"


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {
        400: NO_JSON,
        404: "there is nothing at this address; see /openapi.json",
        405: f"{request.method} is not for this address; see /openapi.json",
    }
    answer = problem(error.status_code, sentences.get(error.status_code, str(error.detail)))
    answer.headers.update(error.headers or {})
    return answer


def _inside(_request: Request, _error: Exception) -> Response:
    return went_wrong()
