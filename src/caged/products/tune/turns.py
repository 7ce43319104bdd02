"""Who is next: turns in a fixed order, as many at a time as there are workers, and what a trial may know.

Whatever the number of workers and however long a trial takes, a trial knows the results of the same trials before it.
The first few of a method know none; then they come in pairs, and a pair knows the results of all before it. So one
worker makes the trials that many make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from caged.products.tune.crew import Crew, Job, Result, Stop, Stopped, Turn, Watch

RANDOM_FIRST = 5  # trials that learn from no other
GROUP = 2  # trials that learn from all before them, and not from each other; more would learn noticeably less


def known_to(number: int) -> int:
    """How many trials of the same method, from the first on, a trial may know the results of.

    >>> [known_to(number) for number in range(11)]
    [0, 0, 0, 0, 0, 5, 5, 7, 7, 9, 9]
    """
    return 0 if number < RANDOM_FIRST else number - (number - RANDOM_FIRST) % GROUP


def take_turns(
    crew: Crew,
    turns: Sequence[Turn],
    *,
    ready: Callable[[Turn], bool],
    begin: Callable[[Turn], Job],
    end: Callable[[Turn, Result], bool],
    must_stop: Stop,
    watch: Watch,
) -> bool:
    """Every turn, each begun as soon as it is `ready` and somebody is free, in this order; whether all were taken.

    `end` says whether a turn is over; else it is taken again.
    """
    order = {turn: place for place, turn in enumerate(turns)}
    waiting, running, stopping = list(turns), set[Turn](), False
    while waiting or running:
        stopping = stopping or must_stop()
        if stopping:
            if not running:
                return False
            crew.stop()
        while not stopping and crew.free and (turn := next(filter(ready, waiting), None)) is not None:
            waiting.remove(turn)
            running.add(turn)
            crew.start(turn, begin(turn), must_stop, watch)
        assert running, f"nobody can begin {waiting[0]}"
        for turn, result in crew.wait():
            running.remove(turn)
            stopping = stopping or isinstance(result, Stopped)
            if not end(turn, result):
                waiting = sorted([*waiting, turn], key=order.__getitem__)
    return True
