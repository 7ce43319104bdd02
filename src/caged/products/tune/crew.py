"""Who does the work of a search: this process alone, or worker processes side by side.

Only the process of the search writes to its folder. Workers are given everything, answer through a pipe and own
nothing: whoever kills one loses what it was doing, and nothing else. They end as soon as the search does, however that
ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, Self

import torch

from caged.errors import CagedError, RunError
from caged.products.tune.attempt import Given
from caged.training import Interrupted, Observer

Turn = tuple[str, int]  # a method, and the number of its trial or the seed of its training
Stop = Callable[[], bool]
TICK = 0.2  # seconds after which somebody looks whether to stop
READY, EPOCH, DONE, STOPPED, RAISED = "ready", "epoch", "done", "stopped", "raised"


class Job(Protocol):
    """Something to do, in whichever process; it can be pickled."""

    def __call__(self, given: Given, observer: Observer, stop_requested: Stop, /) -> Any: ...


@dataclass(frozen=True)
class Done:
    value: Any


@dataclass(frozen=True)
class Stopped:
    """It was asked to stop, and will have to be done again."""


@dataclass(frozen=True)
class Died:
    """Its process ended before it did."""

    reason: str


Result = Done | Stopped | Died


class Watch(Protocol):
    def __call__(self, turn: Turn, line: dict[str, Any], /) -> None: ...


def unwatched(turn: Turn, line: dict[str, Any], /) -> None:
    """For whoever does not want to know."""


@dataclass(frozen=True)
class _Told:
    """Hands the epochs of a job on."""

    tell: Callable[[dict[str, Any]], None]

    def epoch(self, line: dict[str, Any], /) -> None:
        self.tell(line)


class Crew(Protocol):
    """Takes a job where it is `free`; `wait` says what ended. `stop` asks what is running to end after its epoch."""

    @property
    def count(self) -> int: ...

    @property
    def free(self) -> bool: ...

    def start(self, turn: Turn, job: Job, stop_requested: Stop, watch: Watch = unwatched) -> None: ...

    def wait(self) -> list[tuple[Turn, Result]]: ...

    def stop(self) -> None: ...


class Alone:
    """This process, one job after the other."""

    count = 1

    def __init__(self, given: Given) -> None:
        self._given = given
        self._ended: list[tuple[Turn, Result]] = []

    @property
    def free(self) -> bool:
        return not self._ended

    def start(self, turn: Turn, job: Job, stop_requested: Stop, watch: Watch = unwatched) -> None:
        try:
            value = job(self._given, _Told(lambda line: watch(turn, line)), stop_requested)
        except Interrupted:
            self._ended.append((turn, Stopped()))
        else:
            self._ended.append((turn, Done(value)))

    def wait(self) -> list[tuple[Turn, Result]]:
        ended, self._ended = self._ended, []
        return ended

    def stop(self) -> None:
        """Nothing runs beside this."""


# ---------------------------------------------------------------- worker processes


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    turn: Turn | None = None
    watch: Watch = unwatched
    ready: bool = False  # it has begun to listen
    stopping: bool = False

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


@dataclass(eq=False)
class Workers:
    """`count` processes, each with `threads` threads, started when they are needed."""

    given: Given
    count: int
    threads: int
    _workers: list[_Worker] = field(default_factory=list, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    @property
    def free(self) -> bool:
        return sum(worker.turn is not None for worker in self._workers) < self.count

    def start(self, turn: Turn, job: Job, stop_requested: Stop, watch: Watch = unwatched) -> None:
        """`stop_requested` is asked by whoever waits, and told with `stop`: a worker cannot call it."""
        while True:
            worker = next((one for one in self._workers if one.turn is None), None) or self._hired()
            try:
                worker.connection.send(job)
            except OSError:  # it died while it had nothing to do
                self._dismiss(worker)
                continue
            worker.turn, worker.watch, worker.stopping = turn, watch, False
            return

    def wait(self) -> list[tuple[Turn, Result]]:
        """What ended within a moment, or as soon as something did."""
        busy = {worker.connection: worker for worker in self._workers if worker.turn is not None}
        ended = []
        for connection in wait(list(busy), TICK):
            worker = busy[connection]  # type: ignore[index]  # they are what was given
            turn = worker.turn
            result = self._heard(worker)
            if turn is not None and result is not None:
                worker.turn = None
                ended.append((turn, result))
        return ended

    def stop(self) -> None:
        for worker in self._workers:
            if worker.turn is not None and not worker.stopping:
                worker.stopping = True
                with suppress(OSError):  # it is dead, as `wait` will find
                    worker.connection.send(STOPPED)

    def _hired(self) -> _Worker:
        context = get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, self.given, self.threads), daemon=True)
        with _deaf_to_ctrl_c():
            process.start()
        theirs.close()  # or its end would never be noticed
        worker = _Worker(process, mine)
        self._workers.append(worker)
        return worker

    def _dismiss(self, worker: _Worker) -> int | None:
        """Of a dead one; its exit code."""
        worker.process.join(timeout=10)
        code = worker.process.exitcode
        worker.end()
        self._workers.remove(worker)
        return code

    def _heard(self, worker: _Worker) -> Result | None:
        """One message; None where it ends nothing."""
        try:
            kind, content = worker.connection.recv()
        except (EOFError, OSError):
            code = self._dismiss(worker)
            if not worker.ready and (code is None or code >= 0):  # nobody killed it: the next one would fare no better
                raise RunError(
                    f"a worker process {_how_it_ended(code)} before it began; leave --workers out, or, in a program of "
                    'your own, start the search below if __name__ == "__main__"'
                ) from None
            return Died(f"its process {_how_it_ended(code)}")
        if kind == READY:
            worker.ready = True
        elif kind == EPOCH:
            if worker.turn is not None:
                worker.watch(worker.turn, content)
        elif kind == RAISED:
            raise content
        else:
            return Done(content) if kind == DONE else Stopped()
        return None


def _how_it_ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"was ended by signal {-code} ({name})" + ("; memory may have run out" if name == "SIGKILL" else "")


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal. What starts here never hears it: the search says when to stop."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def work(connection: Connection, given: Given, threads: int) -> None:
    """The life of a worker: a job, its answer, the next one. Whatever comes in between means stop."""
    threading.Thread(target=_end_with_the_search, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # evaluation has threads of its own
    connection.send((READY, None))
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        if job != STOPPED:  # else it came too late
            connection.send(_answer(connection, given, job))


def _answer(connection: Connection, given: Given, job: Job) -> tuple[str, Any]:
    observer = _Told(lambda line: connection.send((EPOCH, line)))
    try:
        return DONE, job(given, observer, connection.poll)
    except Interrupted:
        return STOPPED, None
    except CagedError as error:
        return RAISED, RunError(str(error))


def _end_with_the_search() -> None:
    """A search that is killed takes its workers along, in the middle of whatever they do."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
