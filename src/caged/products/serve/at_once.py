"""Questions that cost less than to hand them to a thread are answered by the event loop itself, without waiting.

All that arrive in one turn of the loop are answered in one product of matrices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

MOST = 64  # in one go, so that nobody else waits long

T = TypeVar("T")
R = TypeVar("R")


class _Asked(NamedTuple, Generic[T, R]):
    question: T
    answer: asyncio.Future[R]


class AtOnce(Generic[T, R]):
    """Passes questions to `answer_all` in the order they came; what it gives for one may be an error."""

    def __init__(self, answer_all: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._answer_all = answer_all
        self._asked: list[_Asked[T, R]] = []

    def ask(self, question: T) -> asyncio.Future[R]:
        loop = asyncio.get_running_loop()
        one: _Asked[T, R] = _Asked(question, loop.create_future())
        self._asked.append(one)
        if len(self._asked) == 1:
            loop.call_soon(self._answer)
        elif len(self._asked) >= MOST:
            self._answer()
        return one.answer

    def _answer(self) -> None:
        taken, self._asked = self._asked, []
        if not taken:
            return
        found: Sequence[R | Exception]
        try:
            found = self._answer_all([one.question for one in taken])
        except Exception as error:
            found = [error] * len(taken)
        for one, answer in zip(taken, found, strict=True):
            if one.answer.done():  # whoever asked is gone
                continue
            if isinstance(answer, Exception):
                one.answer.set_exception(answer)
            else:
                one.answer.set_result(answer)
