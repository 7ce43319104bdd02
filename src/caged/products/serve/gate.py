"""A few threads that answer, a short queue before them, and a plain no when that is full."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from caged.errors import CagedError

T = TypeVar("T")


class OverloadError(CagedError):
    """503 over HTTP: nothing is wrong with the request, come back."""


class Gate:
    """At most `threads` pieces of work at once and `queue` that wait; the next one is turned away at the door."""

    def __init__(self, threads: int, queue: int, timeout_s: float) -> None:
        self.room = threads + queue
        self.timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="caged-serve")
        self._lock = Lock()
        self._inside = 0

    @property
    def inside(self) -> int:
        """Pieces of work that run or wait."""
        return self._inside

    async def run(self, work: Callable[[], T]) -> T:
        with self._lock:
            if self._inside >= self.room:
                raise OverloadError(f"{self.room} requests are being answered or waiting; try again in a second")
            self._inside += 1
        try:
            future = self._pool.submit(work)
        except RuntimeError as error:  # closed
            self._left()
            raise OverloadError("the server is stopping; try again in a second") from error
        future.add_done_callback(self._left)
        try:
            # Work that still waits is cancelled; work that runs keeps its place until it ends.
            return await asyncio.wait_for(asyncio.wrap_future(future), self.timeout_s)
        except TimeoutError as error:
            raise OverloadError(f"no answer within {self.timeout_s:g} s; ask for less, or try again") from error

    def _left(self, _done: Future[Any] | None = None) -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        """Whatever is inside ends first."""
        self._pool.shutdown(wait=True)
