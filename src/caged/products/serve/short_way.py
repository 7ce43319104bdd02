"""The two requests that come all the time, without the machinery of routes.

That machinery takes several times as long as the answer itself. Whatever is not plainly right goes the long way, which
knows what to say.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from caged.errors import CagedError
from caged.products.serve import schemas
from caged.products.serve.guard import App, Message, Receive, Scope, Send, replayed
from caged.products.serve.operations import refusal, went_wrong
from caged.products.serve.service import Service


class _Way(NamedTuple):
    path: str
    request: type[schemas.Request]
    answer: Callable[[Any], Awaitable[bytes]]


class ShortWay:
    """ASGI, behind the guard, which hands over bodies as a whole."""

    def __init__(self, service: Service, long_way: App) -> None:
        self._long_way = long_way
        ways = (
            _Way("/recommend", schemas.Recommend, service.one),
            _Way("/recommend/batch", schemas.Batch, service.many),
        )
        self._ways = {way.path: way for way in ways}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way = self._ways.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if way is None or not _says_json(scope):
            await self._long_way(scope, receive, send)
            return
        body = (await receive())["body"]
        try:
            request = way.request.model_validate(json.loads(body))
        except (ValueError, RecursionError):
            await self._long_way(scope, replayed(body, receive), send)
            return
        scope["route"] = way
        try:
            text = await way.answer(request)
        except CagedError as error:
            await refusal(error)(scope, receive, send)
        except Exception:
            await went_wrong()(scope, receive, send)
            raise  # for the log of the server
        else:
            await _send(text, send)


def _says_json(scope: Scope) -> bool:
    kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return bool(kind.partition(b";")[0].strip().lower() == b"application/json")


async def _send(text: bytes, send: Send) -> None:
    headers = [(b"content-length", b"%d" % len(text)), (b"content-type", b"application/json")]
    start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": text})
