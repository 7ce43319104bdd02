"""The memory model: every allocation of a training on one device, its bytes, and when it is there.

With E interactions, n users and items, and k columns of the tables on this device. What is held all the time adds up
with the most that one of the phases takes. `python -m benchmarks.plan` compares the sum with what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from caged.runs.planning.workload import FACTORED, SYMMETRIC, Workload

ALWAYS = "always"
BUILD, DRAW, STEP, VALIDATE = "building the graph", "drawing triples", "a step", "validation"
PHASES = (BUILD, DRAW, STEP, VALIDATE)

BLOCKS_ABOVE = 2**26  # interactions, as `graph.block_sampling`
BLOCK_TRIPLES = 2**24
SORTED_AT_ONCE = 2**26  # on CUDA, as `graph.by_item`
CHUNK = 64  # edges of a program, as `graph.kernels.cuda`
CPU_COLUMNS, CPU_COLUMNS_OF_LARGE = 64, 32  # as `graph.kernels.cpu`
LARGE_ROWS = 2**14
BITMAP_BYTES = 128 * 2**20  # as `graph.sampling`
SCORE_BLOCK = {"cuda": 512 * 2**20, "cpu": 16 * 2**20}  # as `evaluation.topk`
LEAST_SCORED = 64  # users of a block on CPU
INT32 = 2**31 - 1
PROGRAM = 0.35 * 2**30  # what Python, torch and its threads take of the memory of the machine; measured
FLOAT = 4


@dataclass(frozen=True)
class Allocation:
    name: str
    bytes: float
    when: str = ALWAYS


@dataclass(frozen=True)
class Inventory:
    allocations: tuple[Allocation, ...]

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
    of_device = _cuda(work) if work.device == "cuda" else _cpu(work)
    return Inventory((*_common(work), *of_device))


def _common(work: Workload) -> list[Allocation]:
    table = FLOAT * work.numbers
    return [
        Allocation("pattern: neighbours of both sides, int32", 8 * work.interactions),
        Allocation("pattern: offsets and degrees", 2 * _offset_bytes(work) * work.nodes),
        Allocation("tables, float32", table),
        Allocation("Adam's two moments, float32", 2 * table),
        *([Allocation("best tables so far", table)] if work.validated else []),
    ]


def _offset_bytes(work: Workload) -> int:
    return 4 if work.interactions < INT32 else 8


def _factors(work: Workload) -> int:
    """How many numbers of a node are weights: what it sends and receives, one where both are the same."""
    return 1 if work.method in SYMMETRIC else 2


# ---------------------------------------------------------------- CUDA


def _cuda(work: Workload) -> list[Allocation]:
    numbers, edges = work.numbers, work.interactions
    source = FLOAT if work.wide_tables else 2  # of the table that a product reads: bfloat16 unless more is asked for
    chunks = work.nodes + 2 * edges / CHUNK  # at most; which rows are cut depends on their degrees
    held = [Allocation("pattern: chunks of rows", (6 + _offset_bytes(work)) * chunks)]
    if work.method in FACTORED:
        held.append(Allocation("weights: factors per node", 12 * _factors(work) * work.nodes))
    else:
        held.append(Allocation("weights: two per edge in both orders, and the permutation", 20 * edges))
    # A recorded step keeps its memory: gradients of the propagated and of the trained tables (8 bytes per number), and
    # on their way back sums in float32 and two tables of sources, or the gradients that they are added up to.
    held += [
        Allocation("a step: gradients, recorded", 2 * FLOAT * numbers),
        Allocation("a step: propagation, recorded", max(FLOAT + 2 * source, 2 * FLOAT) * numbers),
        Allocation("a step: rows of a batch", _cuda_batch(work)),
    ]
    sorted_at_once = min(edges, SORTED_AT_ONCE)
    return [
        *held,
        *_sampler(work, recorded=True),
        Allocation("the order by item, in pieces", 48 * sorted_at_once, BUILD),
        Allocation("propagated tables", (FLOAT + 2 * source) * numbers, VALIDATE),
        Allocation("scores of a block of users", 2 * _score_block(work), VALIDATE),
    ]


def _cuda_batch(work: Workload) -> float:
    flags = work.nodes + 24 * work.batch  # whose rows a batch names
    if work.method != "softmax":
        return flags + 8 * work.batch
    return flags + work.batch * work.columns * (2 + 2 + FLOAT + FLOAT) + 3 * 64 * 2**20


# ---------------------------------------------------------------- CPU


def _cpu(work: Workload) -> list[Allocation]:
    numbers, edges = work.numbers, work.interactions
    large = max(work.users, work.items) > LARGE_ROWS
    block = min(work.columns, CPU_COLUMNS_OF_LARGE if large else CPU_COLUMNS)
    one_way = 8 if work.method in SYMMETRIC else 16
    weights = one_way if work.method in FACTORED else one_way + 8
    return [
        Allocation("the program", PROGRAM),
        Allocation("pattern: in the order of both directions", 16 * edges + 16 * work.nodes),
        Allocation("weights of both directions, float32", weights * edges),
        Allocation("gradients", FLOAT * numbers),
        *_sampler(work, recorded=False),
        Allocation("the order of both directions", 40 * edges, BUILD),
        Allocation("propagation and its gradients", 2 * FLOAT * numbers, STEP),
        Allocation("blocks of columns", 4 * FLOAT * work.nodes * block, STEP),
        Allocation("rows of a batch", 8 * FLOAT * work.batch * work.columns, STEP),
        Allocation("propagated tables", FLOAT * numbers, VALIDATE),
        Allocation("blocks of columns, validating", 4 * FLOAT * work.nodes * block, VALIDATE),
        Allocation("scores of a block of users", 2 * _score_block(work), VALIDATE),
    ]


# ---------------------------------------------------------------- both


def _sampler(work: Workload, *, recorded: bool) -> list[Allocation]:
    """Whole epochs of triples below `BLOCKS_ABOVE` interactions, blocks of them above."""
    copies = 2 if recorded else 1  # a recorded step reads from buffers of its own
    if work.interactions > BLOCKS_ABOVE:
        triples = max(1, BLOCK_TRIPLES // work.batch) * work.batch
        return [
            Allocation("sampler: offsets of users", 24 * work.users),
            Allocation("sampler: a block of triples", 16 * copies * triples),
            Allocation("sampler: drawing a block", 72 * triples, DRAW),
        ]
    bitmap = work.users * -(-work.items // 8)
    searched = recorded or bitmap > BITMAP_BYTES
    return [
        Allocation("sampler: users, eligible edges and gaps", 20 * work.interactions + 24 * work.users),
        Allocation("sampler: a bit per user and item", 0 if searched else bitmap),
        Allocation("sampler: an epoch of triples", 16 * copies * work.interactions),
        Allocation("sampler: drawing an epoch", (32 if searched else 20) * work.interactions, DRAW),
    ]


def _score_block(work: Workload) -> float:
    row = FLOAT * work.items
    most = SCORE_BLOCK[work.device] if work.device == "cuda" else max(SCORE_BLOCK["cpu"], LEAST_SCORED * row)
    return min(most, work.users * row)
