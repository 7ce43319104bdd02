"""What happens to every request before and after its route: key, size, time, count, log."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from caged.products.serve.metrics import RequestMetrics
from caged.products.serve.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _RefusedError(Exception):
    """Answered here, without a route."""

    def __init__(self, status: int, sentence: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers


class Guard:
    """ASGI around the application. Logs name routes, never what was asked or who asked."""

    def __init__(self, app: App, settings: Settings, metrics: RequestMetrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self._key = None if settings.key is None else _digest(settings.key.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, sent = time.perf_counter(), 500, 0

        async def watched(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        try:
            self._check_key(scope)
            body = await self._body(scope, receive)
            await self.app(scope, replayed(body, receive), watched)
        except _RefusedError as refused:
            await _refuse(refused, watched)
        finally:
            self._tell(scope, status, sent, time.perf_counter() - started)

    def _check_key(self, scope: Scope) -> None:
        if self._key is None or scope["path"] in self.settings.public_paths:
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-api-key", b"")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            given = token.strip()
        if not hmac.compare_digest(_digest(given), self._key):
            raise _RefusedError(
                401,
                "the API key is missing or wrong; send it as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'",
                ((b"www-authenticate", b"Bearer"),),
            )

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """All of it, unless it is too long or too slow."""
        most = self.settings.limits.body_bytes
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        too_long = _RefusedError(413, f"the body is too long; at most {most:,} bytes are allowed", _CLOSE)
        if not stated.isdigit() or int(stated) > most:
            raise too_long
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":  # gone
                        break
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise too_long
                    more = message.get("more_body", False)
        except TimeoutError:
            sentence = f"the body did not arrive within {self.settings.timeout_s:g} s; send it faster"
            raise _RefusedError(408, sentence, _CLOSE) from None
        return b"".join(parts)

    def _tell(self, scope: Scope, status: int, sent: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in METHODS else "other"  # whatever a stranger sends
        self.metrics.observe(method, route, status, seconds)
        if self.settings.access_log:
            line = {"time": round(time.time(), 3), "method": method, "route": route, "status": status}
            line |= {"ms": round(1000 * seconds, 3), "bytes": sent}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


_CLOSE = ((b"connection", b"close"),)  # the rest of the body is not read


def _digest(text: bytes) -> bytes:
    """Of the same length for every key, so that comparing tells nothing."""
    return hashlib.sha256(text).digest()


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one message; afterwards whatever else comes, such as the end of the connection."""
    told = False

    async def receive_whole() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_whole


async def _refuse(refused: _RefusedError, send: Send) -> None:
    body = orjson.dumps({"error": refused.sentence})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *refused.headers]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
