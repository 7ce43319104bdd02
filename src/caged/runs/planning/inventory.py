"""The memory model: what a training holds on one device at the worst moment, by name.

On CUDA it is what torch takes from the device where it can: the tensors of that moment (`course`) and the free blocks
that torch keeps beside them (`allocator`). The context of CUDA, some hundred MiB, is not part of it. On CPU it is what
is held all the time plus the most that one of the phases takes, with E interactions, n users and items, and k columns
of the tables. `python -m benchmarks.plan` compares both with what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from caged.runs.planning.course import BLOCK_TRIPLES, BLOCKS_ABOVE, BUILD, DRAW, FLOAT, STEP, VALIDATE, course
from caged.runs.planning.workload import FACTORED, SYMMETRIC, Workload

ALWAYS = "always"
PHASES = (BUILD, DRAW, STEP, VALIDATE)
KEPT = "free blocks that torch keeps"

CPU_COLUMNS, CPU_COLUMNS_OF_LARGE = 64, 32  # as `graph.kernels.cpu`
LARGE_ROWS = 2**14
BITMAP_BYTES = 128 * 2**20  # as `graph.sampling`
CPU_SCORE_BLOCK = 16 * 2**20  # as `evaluation.topk`
LEAST_SCORED = 64  # users of a block on CPU
PROGRAM = 0.35 * 2**30  # what Python, torch and its threads take of the memory of the machine; measured


@dataclass(frozen=True)
class Allocation:
    name: str
    bytes: float
    when: str = ALWAYS


@dataclass(frozen=True)
class Inventory:
    allocations: tuple[Allocation, ...]
    in_tensors: int | None = None  # the most at a time, on CUDA

    def during(self, when: str) -> float:
        return sum(one.bytes for one in self.allocations if one.when == when)

    @property
    def peak_phase(self) -> str:
        return max(PHASES, key=self.during)

    @property
    def peak(self) -> int:
        """Bytes at the worst moment."""
        return round(self.during(ALWAYS) + self.during(self.peak_phase))


def inventory(work: Workload) -> Inventory:
    """What one device holds. Of methods with weights per edge, what they hold beside these is not counted."""
    return _cuda(work) if work.device == "cuda" else Inventory(tuple(_cpu(work)))


def _cuda(work: Workload) -> Inventory:
    """When torch holds the most; what is still there at the end counts as there all the time."""
    memory = course(work)
    moment, to_the_end = memory.fullest, set(memory.tensors)
    sizes: dict[tuple[str, str], int] = {}
    for tensor in moment.tensors:
        key = (tensor.name, ALWAYS if tensor in to_the_end else moment.phase)
        sizes[key] = sizes.get(key, 0) + tensor.bytes
    sizes[KEPT, moment.phase] = moment.reserved - sum(sizes.values())
    found = (Allocation(name, size, when) for (name, when), size in sizes.items())
    return Inventory(tuple(found), memory.most_in_tensors)


def _cpu(work: Workload) -> list[Allocation]:
    numbers, edges = work.numbers, work.interactions
    table = FLOAT * numbers
    large = max(work.users, work.items) > LARGE_ROWS
    block = min(work.columns, CPU_COLUMNS_OF_LARGE if large else CPU_COLUMNS)
    one_way = 8 if work.method in SYMMETRIC else 16
    weights = one_way if work.method in FACTORED else one_way + 8
    return [
        Allocation("the program", PROGRAM),
        Allocation("pattern: neighbours of both sides, int32", 8 * edges),
        Allocation("pattern: offsets and degrees", 2 * work.offset_bytes * work.nodes),
        Allocation("pattern: in the order of both directions", 16 * edges + 16 * work.nodes),
        Allocation("weights of both directions, float32", weights * edges),
        Allocation("tables, float32", table),
        Allocation("Adam's two moments, float32", 2 * table),
        *([Allocation("best tables so far", table)] if work.validated else []),
        Allocation("gradients", table),
        *_sampler(work),
        Allocation("the order of both directions", 40 * edges, BUILD),
        Allocation("propagation and its gradients", 2 * table, STEP),
        Allocation("blocks of columns", 4 * FLOAT * work.nodes * block, STEP),
        Allocation("rows of a batch", 8 * FLOAT * work.batch * work.columns, STEP),
        Allocation("propagated tables", table, VALIDATE),
        Allocation("blocks of columns, validating", 4 * FLOAT * work.nodes * block, VALIDATE),
        Allocation("scores of a block of users", 2 * _score_block(work), VALIDATE),
    ]


def _sampler(work: Workload) -> list[Allocation]:
    """Whole epochs of triples below `BLOCKS_ABOVE` interactions, blocks of them above."""
    if work.interactions > BLOCKS_ABOVE:
        triples = max(1, BLOCK_TRIPLES // work.batch) * work.batch
        return [
            Allocation("sampler: offsets of users", 24 * work.users),
            Allocation("sampler: a block of triples", 16 * triples),
            Allocation("sampler: drawing a block", 72 * triples, DRAW),
        ]
    bitmap = work.users * -(-work.items // 8)
    searched = bitmap > BITMAP_BYTES
    return [
        Allocation("sampler: users, eligible edges and gaps", 20 * work.interactions + 24 * work.users),
        Allocation("sampler: a bit per user and item", 0 if searched else bitmap),
        Allocation("sampler: an epoch of triples", 16 * work.interactions),
        Allocation("sampler: drawing an epoch", (32 if searched else 20) * work.interactions, DRAW),
    ]


def _score_block(work: Workload) -> float:
    row = FLOAT * work.items
    return min(max(CPU_SCORE_BLOCK, LEAST_SCORED * row), work.users * row)
