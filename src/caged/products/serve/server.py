"""A process that listens: uvicorn around the application, the watcher beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from caged.products.serve.served import Served, Watcher
from caged.products.serve.settings import Settings, check_reachable

CONNECTIONS = 4096  # open at the same time; beyond, uvicorn itself says 503
STOPPING_S = 30  # for requests that are being answered when the server is told to stop


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")


def listen(
    app: FastAPI,
    served: dict[str, Served],
    settings: Settings,
    *,
    host: str,
    port: int,
    watch: bool = True,
    ready: Callable[[str], None] = lambda _address: None,
) -> None:
    """Until a signal ends it; requests that are being answered then are answered. `ready` is told the address."""
    check_reachable(host, settings)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=STOPPING_S,
    )
    watcher = Watcher(list(served.values())) if watch else None
    if watcher is not None:
        watcher.start()
    try:
        _Server(config, ready).run()
    finally:
        if watcher is not None:
            watcher.stop()
