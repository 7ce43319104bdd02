"""Requests that arrive while others are being answered are answered together, in one product of matrices.

To hand a request to a thread and back costs about as much as to answer it; handing over a handful costs the same once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from caged.products.serve.gate import Gate, OverloadError

MOST = 64  # in one go, so that the first of them does not wait long

T = TypeVar("T")
R = TypeVar("R")


class _Waiting(NamedTuple, Generic[T, R]):
    question: T
    answer: asyncio.Future[R]


class Together(Generic[T, R]):
    """Passes questions to `answer_all` in the order they came; what it gives for one may be an error.

    Belongs to the event loop that asks first.
    """

    def __init__(self, gate: Gate, queue: int, answer_all: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._gate, self._queue, self._answer_all = gate, queue, answer_all
        self._waiting: list[_Waiting[T, R]] = []
        self._busy: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def ask(self, question: T) -> R:
        if self._busy is not None and len(self._waiting) >= self._queue:
            raise OverloadError(f"{len(self._waiting)} requests are waiting; try again in a second")
        loop = asyncio.get_running_loop()
        one: _Waiting[T, R] = _Waiting(question, loop.create_future())
        self._waiting.append(one)
        if self._busy is None:
            self._busy = loop.create_task(self._answer())
        try:
            return await asyncio.wait_for(one.answer, self._gate.timeout_s)
        except TimeoutError as error:
            raise OverloadError(f"no answer within {self._gate.timeout_s:g} s; ask for less, or try again") from error

    async def _answer(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                taken = [one for one in taken if not one.answer.done()]  # others gave up
                await self._answer_these(taken)
        finally:
            self._busy = None

    async def _answer_these(self, taken: Sequence[_Waiting[T, R]]) -> None:
        found: Sequence[R | Exception]
        try:
            found = await self._gate.run(lambda: self._answer_all([one.question for one in taken]))
        except Exception as error:
            found = [error] * len(taken)
        for one, answer in zip(taken, found, strict=True):
            if one.answer.done():
                continue
            if isinstance(answer, Exception):
                one.answer.set_exception(answer)
            else:
                one.answer.set_result(answer)
