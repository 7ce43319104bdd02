"""Who is next, whoever is quick, and what a trial may know."""

from __future__ import annotations

from typing import Any

import pytest

from caged.products.tune.crew import Died, Done, Job, Result, Stop, Stopped, Turn, Watch, unwatched
from caged.products.tune.turns import known_to, take_turns

TURNS = [(method, number) for number in range(3) for method in ("a", "b")]


class Scripted:
    """`count` workers; who ends first is said in advance: the place among those that are running."""

    def __init__(self, count: int, ends: list[int], results: dict[Turn, list[Result]] | None = None) -> None:
        self.count, self.ends, self.results = count, ends, results or {}
        self.running: list[Turn] = []
        self.begun: list[Turn] = []
        self.asked_to_stop = False

    @property
    def free(self) -> bool:
        return len(self.running) < self.count

    def start(self, turn: Turn, job: Job, stop_requested: Stop, watch: Watch = unwatched) -> None:
        self.running.append(turn)
        self.begun.append(turn)

    def wait(self) -> list[tuple[Turn, Result]]:
        place = self.ends.pop(0) if self.ends else 0
        turn = self.running.pop(place % len(self.running))
        told = self.results.get(turn)
        return [(turn, told.pop(0) if told else Stopped() if self.asked_to_stop else Done(None))]

    def stop(self) -> None:
        self.asked_to_stop = True


def taken(crew: Scripted, **changes: Any) -> tuple[bool, list[Turn]]:
    """Whether all turns were taken, and those that are over in the order in which they ended."""
    over: list[Turn] = []

    def end(turn: Turn, result: Result) -> bool:
        if isinstance(result, Done):
            over.append(turn)
        return isinstance(result, Done)

    usual: dict[str, Any] = {"ready": lambda turn: True, "must_stop": lambda: False, "watch": unwatched}
    whole = take_turns(crew, TURNS, begin=lambda turn: None, end=end, **{**usual, **changes})  # type: ignore[arg-type, return-value]
    return whole, over


def test_a_trial_knows_whole_groups_only() -> None:
    for number in range(50):
        known = known_to(number)
        assert known <= number
        assert all(known_to(earlier) <= known for earlier in range(number))
        assert all(known_to(mate) == known for mate in range(known, number) if mate >= 5)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_turns_begin_in_their_order(count: int) -> None:
    crew = Scripted(count, [3, 1, 2, 0, 1])
    assert taken(crew)[0]
    assert crew.begun == TURNS


def test_a_turn_that_is_not_ready_lets_others_pass() -> None:
    over: list[Turn] = []
    crew = Scripted(2, [1, 1, 1])
    finished = crew.wait

    def wait() -> list[tuple[Turn, Result]]:
        ended = finished()
        over.extend(turn for turn, _ in ended)
        return ended

    crew.wait = wait  # type: ignore[method-assign]
    whole, _ = taken(crew, ready=lambda turn: turn[1] == 0 or (turn[0], turn[1] - 1) in over)
    assert whole
    assert crew.begun == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("a", 1), ("a", 2)]


def test_a_turn_whose_worker_died_is_taken_again_before_later_ones() -> None:
    crew = Scripted(1, [], {("b", 0): [Died("it was killed")]})
    whole, over = taken(crew)
    assert whole
    assert over == TURNS
    assert crew.begun[:3] == [("a", 0), ("b", 0), ("b", 0)]


def test_who_is_asked_to_stop_begins_nothing_more_and_waits_for_what_runs() -> None:
    crew = Scripted(2, [])
    whole, over = taken(crew, must_stop=lambda: len(crew.begun) == 4)
    assert not whole
    assert crew.asked_to_stop
    assert crew.running == []
    assert crew.begun == TURNS[:4]
    assert over == TURNS[:3]  # one more had ended before


def test_a_turn_that_was_stopped_ends_all() -> None:
    crew = Scripted(2, [], {("a", 1): [Stopped()]})
    whole, over = taken(crew)
    assert not whole
    assert ("a", 1) not in over
