"""The same work on many blocks, on several threads where there are cores: NumPy lets go of the interpreter lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

Block = TypeVar("Block")
Result = TypeVar("Result")

MOST_THREADS = 4


def thread_count() -> int:
    """As many as there are cores, a few at most; fewer where OMP_NUM_THREADS says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, MOST_THREADS, int(asked) if asked.isdecimal() and int(asked) else cores)


def in_order(work: Callable[[Block], Result], blocks: Iterable[Block]) -> Iterator[tuple[Block, Result]]:
    """Every block with its result, in order. At most one block more than there are threads is under way.

    The first is done alone: what it computes once and for all is then there for the others.

    >>> list(in_order(lambda number: number**2, [1, 2, 3]))
    [(1, 1), (2, 4), (3, 9)]
    """
    remaining = iter(blocks)
    first = list(_taken(remaining, 1))
    for block in first:
        yield block, work(block)
    threads = thread_count()
    second = list(_taken(remaining, 1))
    if threads == 1 or not second:
        for block in chain(second, remaining):
            yield block, work(block)
        return
    with ThreadPoolExecutor(threads) as pool:
        running: deque[tuple[Block, Future[Result]]] = deque()
        for block in chain(second, remaining):
            running.append((block, pool.submit(work, block)))
            if len(running) > threads:
                done, future = running.popleft()
                yield done, future.result()
        for done, future in running:
            yield done, future.result()


def ahead(items: Iterable[Result]) -> Iterator[Result]:
    """The same items, the next of them made by another thread while this one works on the last.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    if thread_count() == 1:
        yield from items
        return
    source, nothing = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, source, nothing)
        while (item := coming.result()) is not nothing:
            coming = pool.submit(next, source, nothing)
            yield item  # type: ignore[misc]


@contextmanager
def meanwhile(work: Callable[[], Result]) -> Iterator[Future[Result]]:
    """What another thread makes of `work` while this one goes on."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work)


def _taken(blocks: Iterator[Block], count: int) -> Iterator[Block]:
    for _, block in zip(range(count), blocks, strict=False):
        yield block
