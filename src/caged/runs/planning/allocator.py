"""How torch takes memory from a GPU, with the rules of its caching allocator (CUDACachingAllocator.cpp, defaults).

Memory comes in segments, of which tensors are blocks. What is freed stays with torch, joins its free neighbours and
serves later tensors, but only those of the same pool: a stream, or a recording. So torch holds more than its tensors
take at any time. It gives segments without tensors back when the cache is emptied, as each recording does at its
beginning, or when the device has nothing left. By these rules a training would save little by that, up to 15% on the
shapes of `benchmarks.plan`: most of what is free belongs to the recording, or lies in segments with Adam's moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

UNIT = 512  # bytes; sizes are multiples
SMALL, SMALL_SEGMENT = 2**20, 2**21  # tensors up to this size share segments of that
MIDDLE, MIDDLE_SEGMENT = 10 * 2**20, 20 * 2**20
LARGE_UNIT = 2**21  # larger ones begin with a segment of their own, a multiple of this
MAIN, ASIDE, RECORDING = "main", "aside", "recording"  # streams, and the pool of a recording


@dataclass(frozen=True, eq=False)
class Tensor:
    name: str
    bytes: int


@dataclass(eq=False)
class Block:
    """A part of a segment."""

    segment: int
    start: int
    size: int
    tensor: Tensor | None = None  # none: it is free
    before: Block | None = None
    after: Block | None = None

    @property
    def is_segment(self) -> bool:
        return self.before is None and self.after is None


@dataclass(frozen=True)
class Moment:
    """When torch held the most."""

    phase: str
    reserved: int
    tensors: tuple[Tensor, ...]


Pool = tuple[str, bool]  # a stream or recording, and whether for small tensors


class Allocator:
    """Takes and frees blocks; remembers the most that tensors took, and the moment when torch held the most."""

    def __init__(self) -> None:
        self.phase = ""
        self.most_in_tensors = 0
        self.fullest = Moment("", 0, ())
        self.reserved = 0
        self._in_tensors = 0
        self._stream = MAIN
        self._pools: list[Pool] = []  # of each segment
        self._free: dict[Pool, list[Block]] = {}
        self._tensors: dict[Tensor, None] = {}  # in the order in which they were made

    @contextmanager
    def on(self, stream: str) -> Iterator[None]:
        before, self._stream = self._stream, stream
        yield
        self._stream = before

    def take(self, name: str, size: float) -> Block:
        wanted = max(1, -(-round(size) // UNIT)) * UNIT
        pool = (self._stream, wanted <= SMALL)
        free = self._free.setdefault(pool, [])
        enough = [block for block in free if block.size >= wanted]
        if enough:
            block = min(enough, key=lambda one: (one.size, one.segment, one.start))
            free.remove(block)
        else:
            block = self._segment(pool, wanted)
        self._split(block, wanted, free, least=UNIT if wanted <= SMALL else SMALL + 1)
        block.tensor = Tensor(name, block.size)
        self._tensors[block.tensor] = None
        self._in_tensors += block.size
        self._remember()
        return block

    def give(self, *blocks: Block) -> None:
        for block in blocks:
            assert block.tensor is not None
            del self._tensors[block.tensor]
            self._in_tensors -= block.size
            block.tensor = None
            free = self._free[self._pools[block.segment]]
            after, before = block.after, block.before
            if after is not None and after.tensor is None:
                free.remove(after)
                _join(block, after)
            if before is not None and before.tensor is None:
                _join(before, block)  # which is in the list already
            else:
                free.append(block)

    def empty_cache(self) -> None:
        for free in self._free.values():
            self.reserved -= sum(block.size for block in free if block.is_segment)
            free[:] = [block for block in free if not block.is_segment]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(self._tensors)

    def _segment(self, pool: Pool, wanted: int) -> Block:
        if wanted <= SMALL:
            size = SMALL_SEGMENT
        else:
            size = MIDDLE_SEGMENT if wanted < MIDDLE else -(-wanted // LARGE_UNIT) * LARGE_UNIT
        self._pools.append(pool)
        self.reserved += size
        return Block(len(self._pools) - 1, 0, size)

    def _split(self, block: Block, wanted: int, free: list[Block], least: int) -> None:
        rest = block.size - wanted
        if rest >= least:
            block.size = wanted
            tail = Block(block.segment, block.start + wanted, rest, before=block, after=block.after)
            if block.after is not None:
                block.after.before = tail
            block.after = tail
            free.append(tail)

    def _remember(self) -> None:
        self.most_in_tensors = max(self.most_in_tensors, self._in_tensors)
        if self.reserved > self.fullest.reserved:
            self.fullest = Moment(self.phase, self.reserved, self.tensors)


def _join(first: Block, second: Block) -> None:
    first.size += second.size
    first.after = second.after
    if second.after is not None:
        second.after.before = first
