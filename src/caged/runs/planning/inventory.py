"""The memory model: what a training holds on one device at the worst moment, by name.

On CUDA it is what torch takes from the device where it can: the tensors of that moment (`course`) and the free blocks
that torch keeps beside them (`allocator`). The context of CUDA, some hundred MiB, is not part of it. On CPU it is what
is held all the time plus the most that one of the phases takes, with E interactions, n users and items, and k columns
of the tables. `python -m benchmarks.plan` compares both with what is measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from caged.runs.planning.course import BLOCK_TRIPLES, BLOCKS_ABOVE, BUILD, DRAW, FLOAT, STEP, VALIDATE, course
from caged.runs.planning.workload import FACTORED, SYMMETRIC, Workload

ALWAYS = "always"
TRAINING = "all of training"
TEST = "the final test"
PHASES = (BUILD, DRAW, STEP, VALIDATE, TEST)
KEPT = "free blocks that torch keeps"

CPU_COLUMNS, CPU_COLUMNS_OF_LARGE = 64, 32  # as `graph.kernels.cpu`
LARGE_ROWS = 2**14
BITMAP_BYTES = 128 * 2**20  # as `graph.sampling`
CPU_SCORE_BLOCK = 16 * 2**20  # as `evaluation.topk`
LEAST_SCORED = 64  # users of a block on CPU
SEEN, LISTS, OF_USERS = FILLING = (
    "pairs that were seen, as keys",
    "lists of everybody, and what is measured of them",
    "what is measured of users",
)
PER_SEEN = 32  # bytes of a pair while the pairs of train and validation are put in one order, as `data.seen`
PER_PLACE, PER_TESTED = 12, 600  # bytes of a place in a list and of a user, while lists are made and measured; fitted
WRITING = 0.25 * 2**30  # what measuring and writing take beside; fitted
LEFT = 0.3  # share of the fullest phase of training that stays in pieces too small for anything; fitted
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

    def during(self, phase: str) -> tuple[Allocation, ...]:
        held = {ALWAYS, phase} if phase == TEST else {ALWAYS, TRAINING, phase}
        return tuple(one for one in self.allocations if one.when in held)

    @property
    def peak_phase(self) -> str:
        return max(PHASES, key=lambda phase: bytes_of(self.during(phase)))

    @property
    def at_peak(self) -> tuple[Allocation, ...]:
        """What is there at the worst moment."""
        return self.during(self.peak_phase)

    @property
    def peak(self) -> int:
        return round(bytes_of(self.at_peak))


def bytes_of(allocations: Iterable[Allocation]) -> float:
    return sum(one.bytes for one in allocations)


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
    """The C library keeps what training frees. Lists go into that; what they do not need stays with the process."""
    training, test = _training_on_cpu(work), of_final_test(work)
    if not test:
        return training
    fullest = max(bytes_of(one for one in training if one.when == phase) for phase in PHASES)
    freed = fullest + bytes_of(one for one in training if one.when == TRAINING)
    left = max(LEFT * fullest, freed - bytes_of(one for one in test if one.name in FILLING))
    return [*training, *test, Allocation("what training left", left, TEST)]


def _training_on_cpu(work: Workload) -> list[Allocation]:
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
        Allocation("Adam's two moments, float32", 2 * table, TRAINING),
        *([Allocation("best tables so far", table, TRAINING)] if work.validated else []),
        Allocation("gradients", table, TRAINING),
        *_sampler(work),
        Allocation("the order of both directions", 40 * edges, BUILD),
        Allocation("propagation and its gradients", 2 * table, STEP),
        Allocation("blocks of columns", 4 * FLOAT * work.nodes * block, STEP),
        Allocation("rows of a batch", 8 * FLOAT * work.batch * work.columns, STEP),
        Allocation("propagated tables", table, VALIDATE),
        Allocation("blocks of columns, validating", 4 * FLOAT * work.nodes * block, VALIDATE),
        Allocation("scores of a block of users", 2 * _score_block(work), VALIDATE),
    ]


def of_final_test(work: Workload) -> list[Allocation]:
    """Of the memory of the machine, whatever it trains on: everybody's lists are there until they are measured."""
    if not work.tested_users:
        return []
    places = work.tested_users * min(work.list_length, work.items)
    return [
        Allocation(SEEN, PER_SEEN * work.interactions, TEST),
        Allocation(LISTS, PER_PLACE * places, TEST),
        Allocation(OF_USERS, PER_TESTED * work.tested_users, TEST),
        Allocation("measuring and writing", WRITING, TEST),
    ]


def _sampler(work: Workload) -> list[Allocation]:
    """Whole epochs of triples below `BLOCKS_ABOVE` interactions, blocks of them above."""
    if work.interactions > BLOCKS_ABOVE:
        triples = max(1, BLOCK_TRIPLES // work.batch) * work.batch
        return [
            Allocation("sampler: offsets of users", 24 * work.users, TRAINING),
            Allocation("sampler: a block of triples", 16 * triples, TRAINING),
            Allocation("sampler: drawing a block", 72 * triples, DRAW),
        ]
    bitmap = work.users * -(-work.items // 8)
    searched = bitmap > BITMAP_BYTES
    return [
        Allocation("sampler: users, eligible edges and gaps", 20 * work.interactions + 24 * work.users, TRAINING),
        Allocation("sampler: a bit per user and item", 0 if searched else bitmap, TRAINING),
        Allocation("sampler: an epoch of triples", 16 * work.interactions, TRAINING),
        Allocation("sampler: drawing an epoch", (32 if searched else 20) * work.interactions, DRAW),
    ]


def _score_block(work: Workload) -> float:
    row = FLOAT * work.items
    return min(max(CPU_SCORE_BLOCK, LEAST_SCORED * row), work.users * row)
