"""Who asks in the same turn of the loop is answered in the same go, each with an answer or an error of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from caged.errors import ConfigError
from caged.products.serve.at_once import MOST, AtOnce


def test_those_who_ask_together_are_answered_together() -> None:
    calls = []

    def doubled(numbers: Sequence[int]) -> list[int | Exception]:
        calls.append(list(numbers))
        return [ConfigError(f"no {number}") if number % 10 == 9 else 2 * number for number in numbers]

    async def crowd() -> None:
        at_once: AtOnce[int, int] = AtOnce(doubled)
        asked = [at_once.ask(number) for number in range(MOST + 20)]
        for number, answer in enumerate(await asyncio.gather(*asked, return_exceptions=True)):
            assert str(answer) == (f"no {number}" if number % 10 == 9 else str(2 * number))
        assert await at_once.ask(4) == 8

    asyncio.run(crowd())
    assert [len(call) for call in calls] == [MOST, 20, 1]
    assert [number for call in calls for number in call] == [*range(MOST + 20), 4]


def test_what_breaks_breaks_for_those_in_it_and_for_nobody_after() -> None:
    async def crowd() -> None:
        at_once: AtOnce[int, int] = AtOnce(lambda numbers: [1 // number for number in numbers])
        gone, broken = at_once.ask(0), at_once.ask(1)
        gone.cancel()
        with pytest.raises(ZeroDivisionError):
            await broken
        assert await at_once.ask(1) == 1

    asyncio.run(crowd())
