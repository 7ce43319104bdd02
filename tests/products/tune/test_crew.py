"""Worker processes: they answer, they are stopped, they die, and none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from caged.errors import DataError, RunError
from caged.products.tune.attempt import Given
from caged.products.tune.crew import Alone, Died, Done, Result, Stopped, Turn, Workers, unwatched
from caged.training import Interrupted, Observer

NOTHING = cast("Given", None)
FIRST, SECOND = ("a", 0), ("b", 0)


@dataclass(frozen=True)
class Tells:
    """A job of two epochs."""

    value: str

    def __call__(self, given: Given, observer: Observer, stop_requested: Callable[[], bool]) -> tuple[str, int]:
        observer.epoch({"epoch": 1})
        observer.epoch({"epoch": 2})
        return self.value, os.getpid()


@dataclass(frozen=True)
class Lasts:
    """A job that ends only when it is told to."""

    def __call__(self, given: Given, observer: Observer, stop_requested: Callable[[], bool]) -> None:
        observer.epoch({"epoch": 1})
        while not stop_requested():
            time.sleep(0.01)
        raise Interrupted


@dataclass(frozen=True)
class Fails:
    def __call__(self, given: Given, observer: Observer, stop_requested: Callable[[], bool]) -> None:
        raise DataError("a file is gone; restore it")


class Seen:
    """The epochs that were told."""

    def __init__(self) -> None:
        self.epochs: list[tuple[Turn, int]] = []

    def __call__(self, turn: Turn, line: dict[str, Any], /) -> None:
        self.epochs.append((turn, line["epoch"]))


def never() -> bool:
    return False


def ended(crew: Workers, count: int = 1) -> dict[Turn, Result]:
    found: dict[Turn, Result] = {}
    while len(found) < count:
        found.update(crew.wait())
    return found


def is_gone(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return True
    return status.rpartition(") ")[2].startswith(("Z", "X"))


def test_this_process_alone() -> None:
    crew, seen = Alone(NOTHING), Seen()
    assert crew.free
    crew.start(FIRST, Tells("x"), never, seen)
    assert not crew.free
    assert crew.wait() == [(FIRST, Done(("x", os.getpid())))]
    assert seen.epochs == [(FIRST, 1), (FIRST, 2)]
    crew.start(SECOND, Lasts(), lambda: True)
    assert crew.wait() == [(SECOND, Stopped())]


def test_workers_answer_die_and_stop() -> None:
    seen = Seen()
    with Workers(NOTHING, 2, 1) as crew:
        crew.start(FIRST, Tells("x"), never, seen)
        assert crew.free
        crew.start(SECOND, Lasts(), never, seen)
        assert not crew.free
        answered = ended(crew)[FIRST]
        assert isinstance(answered, Done)
        value, pid = answered.value
        assert (value, pid in crew.pids) == ("x", True)
        assert [epoch for turn, epoch in seen.epochs if turn == FIRST] == [1, 2]
        while SECOND not in dict(seen.epochs):
            crew.wait()
        os.kill(next(one for one in crew.pids if one != pid), signal.SIGKILL)
        died = ended(crew)[SECOND]
        assert died == Died("its process was ended by signal 9 (SIGKILL); memory may have run out")
        crew.start(FIRST, Lasts(), never)  # by the one who is left
        crew.stop()
        assert ended(crew) == {FIRST: Stopped()}
        crew.start(FIRST, Tells("y"), never)  # what came too late harms nobody
        again = ended(crew)[FIRST]
        assert isinstance(again, Done)
        assert again.value == ("y", pid)
        crew.start(FIRST, Fails(), never)
        with pytest.raises(RunError, match="a file is gone; restore it"):
            ended(crew)
        crew.start(FIRST, Lasts(), never)
    assert crew.pids == []
    assert is_gone(pid)


@pytest.mark.slow
def test_a_worker_that_dies_idle_is_replaced() -> None:
    with Workers(NOTHING, 1, 1) as crew:
        crew.start(FIRST, Tells("x"), never)
        ended(crew)
        (pid,) = crew.pids
        os.kill(pid, signal.SIGKILL)
        crew._workers[0].process.join()  # with all of its threads, of which any could keep its pipe open
        crew.start(FIRST, Tells("y"), never, unwatched)
        answered = ended(crew)[FIRST]
        assert isinstance(answered, Done)
        assert answered.value[0] == "y"
        assert crew.pids != [pid]


UNGUARDED = """
from caged.products.tune.crew import Workers
from tests.products.tune.test_crew import FIRST, NOTHING, Tells, ended, never
with Workers(NOTHING, 1, 1) as crew:
    crew.start(FIRST, Tells("x"), never)
    ended(crew)
"""


@pytest.mark.slow
def test_a_program_without_a_guard_is_told_so(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(UNGUARDED, encoding="utf-8")
    here = Path(__file__).parents[3]
    paths = os.pathsep.join([str(here), str(here / "src")])
    found = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )
    assert found.returncode != 0
    assert "RunError: a worker process ended with exit code 1 before it began; leave --workers out" in found.stderr
