"""So many at once, so many that wait, a plain no for the next, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from caged.products.serve.gate import Gate, OverloadError


def test_the_next_one_is_turned_away_and_room_is_made_again() -> None:
    async def crowd() -> None:
        gate, end = Gate(threads=1, queue=2, timeout_s=5), Event()
        inside = [asyncio.ensure_future(gate.run(end.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        assert gate.inside == gate.room == 3
        with pytest.raises(OverloadError, match="3 requests are being answered or waiting"):
            await gate.run(lambda: None)
        end.set()
        assert await asyncio.gather(*inside) == [True] * 3
        assert await gate.run(lambda: 7) == 7
        gate.close()
        assert gate.inside == 0
        with pytest.raises(OverloadError, match="stopping"):
            await gate.run(lambda: None)
        assert gate.inside == 0

    asyncio.run(crowd())


def test_what_takes_too_long_is_given_up_and_what_waits_behind_it_is_never_begun() -> None:
    async def slow() -> None:
        gate, end, begun = Gate(threads=1, queue=1, timeout_s=0.05), Event(), Event()
        first, second = gate.run(end.wait), gate.run(begun.set)
        for outcome in await asyncio.gather(first, second, return_exceptions=True):
            assert isinstance(outcome, OverloadError)
            assert "no answer within 0.05 s" in str(outcome)
        assert gate.inside == 1  # the first one still runs
        end.set()
        gate.close()
        assert gate.inside == 0
        assert not begun.is_set()

    asyncio.run(slow())


def test_errors_come_through_and_leave_room() -> None:
    async def failing() -> None:
        gate = Gate(threads=1, queue=0, timeout_s=5)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await gate.run(lambda: 1 / 0)
        gate.close()
        assert gate.inside == 0

    asyncio.run(failing())
