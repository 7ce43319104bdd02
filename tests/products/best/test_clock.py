"""The time there is."""

from __future__ import annotations

import pytest

from caged.products.best.clock import Clock, EpochsOf
from tests.products.best.searches import Time


@pytest.mark.parametrize(("budget", "to_finish"), [(1200, 60), (100, 10), (20, 5)])
def test_some_time_is_for_the_end(budget: float, to_finish: float) -> None:
    assert Clock(budget, now=Time()).to_search == budget - to_finish


def test_the_time_of_earlier_processes_counts() -> None:
    time = Time()
    clock = Clock(100, spent=30, now=time)
    time.seconds = 20
    assert (clock.elapsed, clock.left) == (50, 50)


def test_progress_is_that_of_the_whole_command() -> None:
    time = Time()
    told: list[tuple[str, float | None]] = []
    clock = Clock(100, now=time, report=lambda what, share: told.append((what, share)))
    watch = EpochsOf(clock, "LightGCN, setting 1/6")
    for seconds, best in ((10, None), (200, 0.25)):
        time.seconds = seconds
        watch.epoch({"epoch": 1, "epochs": 9, "best": best, "seconds": {"train": 1.0, "validate": 0.5}})
    assert told == [
        ("best: LightGCN, setting 1/6, epoch 1/9", 0.1),
        ("best: LightGCN, setting 1/6, epoch 1/9, best 0.2500", 1.0),
    ]
    assert watch.seconds == [1.5, 1.5]
