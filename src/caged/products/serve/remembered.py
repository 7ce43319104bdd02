"""What was made for the last questions, up to so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Makes a value once and keeps it until those asked for later need its room. Threads may share it."""

    def __init__(self, size_of: Callable[[T], int], most_bytes: int, most: int = 1000) -> None:
        self._size_of, self._most_bytes, self._most = size_of, most_bytes, most
        self._known: OrderedDict[Hashable, T] = OrderedDict()  # asked for last, last
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """`make` may run more than once if several threads ask at the same time; its errors are not remembered."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        value = make()
        with self._lock:
            if key not in self._known and self._size_of(value) <= self._most_bytes:
                self._known[key] = value
                self._bytes += self._size_of(value)
            while self._bytes > self._most_bytes or len(self._known) > self._most:
                self._bytes -= self._size_of(self._known.popitem(last=False)[1])
        return value
