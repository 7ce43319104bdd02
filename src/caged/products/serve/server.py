"""A process that listens: uvicorn around the application, the watcher beside it."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable, Mapping

import uvicorn
from fastapi import FastAPI

from caged.errors import RunError
from caged.products.serve.served import Served, Watcher
from caged.products.serve.settings import Settings, check_reachable

CONNECTIONS = 4096  # open at the same time; beyond, uvicorn itself says 503
BACKLOG = 2048  # that the system accepts before the server does
STOPPING_S = 30  # for requests that are being answered when the server is told to stop


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def listen(
    app: FastAPI,
    served: Mapping[str, Served],
    settings: Settings,
    *,
    host: str,
    port: int,
    watch: bool = True,
    ready: Callable[[str], None] = lambda _address: None,
) -> None:
    """Until a signal ends it; requests that are being answered then are answered. `ready` is told the address."""
    check_reachable(host, settings)
    opened = _socket(host, port)
    name, number = opened.getsockname()[:2]
    address = f"http://{f'[{name}]' if ':' in name else name}:{number}"
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=STOPPING_S,
    )
    watcher = Watcher(list(served.values()))
    if watch:
        watcher.start()
    gc.freeze()  # or else all of the libraries is searched for garbage every few seconds, and everybody waits for it
    try:
        _Server(config, lambda: ready(address)).run(sockets=[opened])
    finally:
        watcher.stop()
        opened.close()


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None) or 0
        reason = os.strerror(number) if number > 0 else error
        raise RunError(f"cannot listen on {host}:{port} ({reason}); choose another --host or --port") from error
