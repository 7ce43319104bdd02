"""A client that costs little: connections that stay open, requests that are written already, answers read as bytes."""

from __future__ import annotations

import asyncio
import re
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import cast

from benchmarks.soak_questions import Question

LENGTH = re.compile(rb"content-length: *([0-9]+)", re.IGNORECASE)
VERSION = re.compile(rb'"version":"([0-9a-f]+)"')
SHOWN = 5  # of what went wrong, word for word
REMEMBERED = 64  # bodies of one question that were found right


class Tally:
    """What came of the questions. A body that was found right once is right whenever it comes again."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.versions: Counter[str] = Counter()
        self.wrong = self.errors = self.bad_otherwise = 0
        self.seconds = array("d")  # of good ones
        self.examples: list[str] = []
        self._right: defaultdict[int, set[int]] = defaultdict(set)

    def take(self, question: Question, status: int, body: bytes, seconds: float) -> None:
        self.kinds[question.kind] += 1
        if question.status != 200:
            if status != question.status:
                self.bad_otherwise += 1
                self._show(question, status, body)
            return
        self.seconds.append(seconds)
        if status != 200:
            self.errors += 1
            self._show(question, status, body)
        elif not self._is_right(question, body):
            self.wrong += 1
            self._show(question, status, body)
        if found := VERSION.search(body):
            self.versions[found[1].decode()] += 1

    def _is_right(self, question: Question, body: bytes) -> bool:
        known, mark = self._right[id(question)], hash(body)
        if mark in known:
            return True
        right = question.is_right(body)
        if right and len(known) < REMEMBERED:
            known.add(mark)
        return right

    def _show(self, question: Question, status: int, body: bytes) -> None:
        if len(self.examples) < SHOWN:
            self.examples.append(f"{question.kind}: {question.sent[-200:]!r} got {status} {body[:300]!r}")


class Connection(asyncio.Protocol):
    """One question at a time, until there are no more."""

    def __init__(self, following: Callable[[], Question | None], tally: Tally) -> None:
        self._following, self._tally = following, tally
        self._question: Question | None = None
        self._got = b""
        self._sent_at = 0.0
        self.ended = asyncio.get_running_loop().create_future()  # True: there is nothing left to ask

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def _ask(self) -> None:
        self._question = question = self._following()
        if question is None:
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(question.sent)
        if question.status == 0:
            self._tally.take(question, 0, b"", 0.0)
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        got = self._got = self._got + data if self._got else data
        end = got.find(b"\r\n\r\n")
        if end < 0 or self._question is None:
            return
        length = LENGTH.search(got, 0, end)
        whole = end + 4 + (int(length[1]) if length else 0)
        if len(got) < whole:
            return
        self._got = got[whole:]
        question, self._question = self._question, None
        self._tally.take(question, int(got[9:12]), got[end + 4 : whole], time.perf_counter() - self._sent_at)
        if b"connection: close" in got[:end].lower():
            self._transport.close()
        else:
            self._ask()

    def connection_lost(self, _error: Exception | None) -> None:
        question = self._question
        if question is not None and question.status != 0:  # the server hung up
            self._tally.take(question, 0, b"", time.perf_counter() - self._sent_at)
        if not self.ended.done():
            self.ended.set_result(None)


async def fire(
    address: tuple[str, int], questions: Sequence[Question], turns: Sequence[int], tally: Tally, width: int
) -> None:
    """Ask `questions` in the order of `turns` over `width` connections."""
    waiting = iter(turns)
    left = len(turns)

    def following() -> Question | None:
        nonlocal left
        place = next(waiting, None)
        left -= place is not None
        return None if place is None else questions[place]

    async def keep_asking() -> None:
        while left > 0:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(following, tally), *address
            )
            await connection.ended

    await asyncio.gather(*(keep_asking() for _ in range(width)))
