"""The explorer's page and its questions over HTTP.

Ids and histories travel in bodies, not in addresses, so that no log of addresses holds them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, RedirectResponse

import caged.page
from caged.errors import ConfigError
from caged.products.serve.engine import Engine
from caged.products.serve.explorer.answers import Answers
from caged.products.serve.explorer.shelf import Shelf
from caged.products.serve.service import Service
from caged.products.serve.settings import is_loopback

ROOT = "/explorer"
ASSETS = Path(__file__).parent / "assets"
# The page shares the colours and letters of all other pages.
FILES = {
    "/": (ASSETS / "explorer.html", "text/html"),
    "/page.css": (Path(caged.page.__file__).parent / "templates" / "page.css", "text/css"),
    "/explorer.css": (ASSETS / "explorer.css", "text/css"),
    "/explorer.js": (ASSETS / "explorer.js", "text/javascript"),
    "/draw.js": (ASSETS / "draw.js", "text/javascript"),
}
PUBLIC_PATHS = (ROOT, *(ROOT + path for path in FILES))  # nobody's data is in there; the page itself asks for the key
QUESTIONS = ("about", "search", "person", "lists", "why", "similar")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Endpoint = Callable[[Request], Awaitable[Response]]


def add_explorer(app: FastAPI, service: Service) -> None:
    """The page under /explorer."""
    latest = _Latest(service)
    latest.answers()  # too many artefacts are told before anybody asks

    async def to_page(_: Request) -> Response:
        return RedirectResponse(f"{ROOT}/", headers=HEADERS)

    app.add_route(ROOT, to_page, include_in_schema=False)
    for path, (file, media_type) in FILES.items():
        app.add_route(ROOT + path, _file(file, media_type), include_in_schema=False)
    for question in QUESTIONS:
        endpoint = _question(latest, question, service)
        app.add_route(f"{ROOT}/api/{question}", endpoint, ["POST"], include_in_schema=False)


class _Latest:
    """What was prepared for a model is kept as long as the model answers, and no longer."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._shelves: WeakKeyDictionary[Engine, Shelf] = WeakKeyDictionary()

    def answers(self) -> Answers:
        engines = [one.engine for one in self._service.served.values()]
        return Answers(engines, [self._shelf(engine) for engine in engines])

    def _shelf(self, engine: Engine) -> Shelf:
        if engine not in self._shelves:
            self._shelves[engine] = Shelf(engine.model)
        return self._shelves[engine]


def _file(path: Path, media_type: str) -> Endpoint:
    async def serve(_: Request) -> Response:
        return FileResponse(path, media_type=media_type, headers=HEADERS)

    return serve


def _question(latest: _Latest, name: str, service: Service) -> Endpoint:
    async def ask(request: Request) -> Response:
        _refuse_other_pages(request, keyless=service.settings.key is None)
        body = _object(await request.body())
        content = await service.gate.run(lambda: orjson.dumps(getattr(latest.answers(), name)(body)))
        return Response(content, headers=HEADERS, media_type="application/json")

    return ask


def _refuse_other_pages(request: Request, *, keyless: bool) -> None:
    """A page of somebody else, open in the same browser, gets nothing.

    It cannot send JSON without asking first; and where no key is asked for, the address must be this machine's own,
    not a name that was made to lead here.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ConfigError("the question is no JSON by its Content-Type; send it as application/json")
    if keyless and not is_loopback((request.url.hostname or "").strip("[]")):
        raise ConfigError("without an API key the explorer answers only under 127.0.0.1 or localhost; open it there")


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise ConfigError("the body is no JSON object; send one")
    return body
