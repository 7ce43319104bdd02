"""Who waits is answered with the others who wait, in order, each with an answer or an error of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest

from caged.errors import ConfigError
from caged.products.serve.gate import Gate, OverloadError
from caged.products.serve.together import MOST, Together


def test_those_who_wait_are_answered_together() -> None:
    async def crowd() -> None:
        goes_on, calls = Event(), []

        def doubled(numbers: Sequence[int]) -> list[int | Exception]:
            goes_on.wait(10)
            calls.append(list(numbers))
            return [ConfigError(f"no {number}") if number % 10 == 9 else 2 * number for number in numbers]

        gate = Gate(threads=1, queue=5, timeout_s=10)
        together = Together(gate, 200, doubled)
        asked = [asyncio.ensure_future(together.ask(number)) for number in range(MOST + 20)]
        await asyncio.sleep(0.01)  # the first ones are on their way
        goes_on.set()
        for number, answer in enumerate(await asyncio.gather(*asked, return_exceptions=True)):
            assert str(answer) == (f"no {number}" if number % 10 == 9 else str(2 * number))
        assert [len(call) for call in calls] == [MOST, 20]
        assert [number for call in calls for number in call] == list(range(MOST + 20))
        assert (together.waiting, await together.ask(4)) == (0, 8)
        gate.close()

    asyncio.run(crowd())


def test_so_many_may_wait_and_nobody_waits_for_ever() -> None:
    async def crowd() -> None:
        goes_on, seen = Event(), []

        def slow(numbers: Sequence[int]) -> list[int | Exception]:
            goes_on.wait(10)
            seen.extend(numbers)
            return list(numbers)

        gate = Gate(threads=1, queue=5, timeout_s=0.1)
        together = Together(gate, 2, slow)
        first = asyncio.ensure_future(together.ask(0))
        await asyncio.sleep(0.01)
        others = [asyncio.ensure_future(together.ask(number)) for number in (1, 2)]
        await asyncio.sleep(0.01)
        with pytest.raises(OverloadError, match="2 requests are waiting"):
            await together.ask(3)
        for answer in await asyncio.gather(first, *others, return_exceptions=True):
            assert isinstance(answer, OverloadError)
            assert "no answer within 0.1 s" in str(answer)
        goes_on.set()
        await asyncio.sleep(0.01)
        assert await together.ask(4) == 4
        assert (seen[0], seen[-1]) == (0, 4)
        gate.close()

    asyncio.run(crowd())


def test_what_breaks_breaks_for_those_in_it_and_for_nobody_after() -> None:
    async def crowd() -> None:
        def failing(numbers: Sequence[int]) -> list[int | Exception]:
            return [1 // number for number in numbers]

        gate = Gate(threads=1, queue=5, timeout_s=10)
        together = Together(gate, 2, failing)
        with pytest.raises(ZeroDivisionError):
            await together.ask(0)
        assert await together.ask(1) == 1
        gate.close()

    asyncio.run(crowd())
