"""A training on CUDA as the tensors that it makes and frees, one after the other, with the sizes they have.

Each method here follows the code that it names, in the order of that code, because what torch takes from the device
depends on the order (`allocator`). Two epochs are enough: later ones find all memory they need.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from caged.runs.planning.allocator import ASIDE, MAIN, RECORDING, Allocator, Block
from caged.runs.planning.workload import FACTORED, SYMMETRIC, Workload

BUILD, DRAW, STEP, VALIDATE = "building the graph", "drawing triples", "a step", "validation"

BLOCKS_ABOVE = 2**26  # interactions, as `graph.block_sampling`
BLOCK_TRIPLES = 2**24
SORTED_AT_ONCE = 2**26  # as `graph.by_item`
CHUNK = 64  # edges of a program, as `graph.kernels.cuda`
WARM_UP_RUNS = 3  # as `cuda_graph`
SCORE_BLOCK = 512 * 2**20  # as `evaluation.topk`
CANDIDATE_ROWS = 2048  # as `models.backbone_loss`
WORKSPACE = 32 * 2**20  # of cuBLAS, for each stream that multiplies matrices
BYTE, HALF, INT, FLOAT, LONG = 1, 2, 4, 4, 8

PASSING = "what is computed on the way"
ROWS = "pattern: neighbours of both sides, int32"
OFFSETS = "pattern: offsets and degrees"
CHUNKS = "pattern: chunks of rows"
WEIGHTS = "weights"
TABLES = "tables, float32"
MOMENTS = "Adam's two moments, float32"
BEST = "best tables so far"
SAMPLER = "sampler: users, eligible edges and gaps"
SAMPLER_OF_BLOCKS = "sampler: offsets of users"
TRIPLES = "sampler: triples, as drawn and where a recorded step reads them"
COPIES = "tables before recording"
GRADIENTS = "a step: gradients"
PROPAGATION = "a step: propagation"
OF_BATCH = "a step: rows of a batch"
SEEN = "validation: what was seen"
VECTORS = "validation: propagated tables"
SCORES = "validation: scores of a block of users"
PRODUCTS = "workspace of matrix products"


def course(work: Workload) -> Allocator:
    """After two epochs of this training."""
    run = _Course(work)
    run.build()
    run.prepare()
    run.epoch()
    run.epoch()
    return run.memory


class _Course:
    def __init__(self, work: Workload) -> None:
        self.memory = Allocator()
        self._work = work
        self._source = FLOAT if work.wide_tables else HALF  # of the table that a product reads
        self._blocks = work.interactions > BLOCKS_ABOVE
        self._triples = max(1, BLOCK_TRIPLES // work.batch) * work.batch if self._blocks else work.interactions
        self._draws = min(3, -(-work.interactions // self._triples))  # of an epoch; more find the same memory
        self._recorded = self._has_moments = self._has_layout = self._has_best = False
        self._multiplied: set[str] = set()

    # ---------------------------------------------------------------- words

    def _new(self, name: str, *sizes: float) -> list[Block]:
        return [self.memory.take(name, size) for size in sizes]

    def _tables(self, name: str, columns: int | None = None) -> list[Block]:
        work = self._work
        columns = columns or work.columns
        return self._new(name, FLOAT * work.users * columns, FLOAT * work.items * columns)

    @contextmanager
    def _passing(self, *sizes: float) -> Iterator[None]:
        """Tensors that are there within."""
        blocks = self._new(PASSING, *sizes)
        yield
        self.memory.give(*blocks)

    def _then_free(self, *sizes: float) -> None:
        with self._passing(*sizes):
            pass

    def _workspace(self, stream: str) -> None:
        if stream not in self._multiplied:
            self._multiplied.add(stream)
            self._new(PRODUCTS, WORKSPACE)

    # ---------------------------------------------------------------- before the first epoch

    def build(self) -> None:
        """`BipartiteGraph.from_rows`, with the sort of `graph.by_item`."""
        work, edges = self._work, self._work.interactions
        self.memory.phase = BUILD
        if work.validated:  # `SeenMask`: of a sample only their rows
            ranked = work.users if work.validation_users is None else min(work.validation_users, work.users)
            self._new(SEEN, LONG * ranked, INT * edges * ranked / work.users)
        self._new(ROWS, INT * edges)
        self._new(OFFSETS, self._work.offset_bytes * work.users)
        with self._passing(*[LONG * work.items] * 3):
            self._new(ROWS, INT * edges)
            self._sort_piece(min(SORTED_AT_ONCE, edges))  # later pieces are not larger
            self._new(OFFSETS, self._work.offset_bytes * work.items)

    def _sort_piece(self, edges: int) -> None:
        """Owners, sorted keys and order; while sorting an index and a copy of both, then the places."""
        self._then_free(self._work.offset_bytes * self._work.users, LONG * self._work.users)
        with self._passing(INT * edges, INT * edges, LONG * edges):
            self._then_free(LONG * edges, (INT + LONG) * edges)
            with self._passing(LONG * edges):
                self._then_free(LONG * edges)

    def prepare(self) -> None:
        """Tables, weights and sampler, as `Loop.run` makes them."""
        work = self._work
        self._new(OFFSETS, INT * work.users, INT * work.items)
        for _ in range(1 if work.method in SYMMETRIC else 2):
            for rows in (work.users, work.items):
                with self._passing(LONG * rows, rows, LONG * rows):
                    self._new(WEIGHTS, LONG * rows)
        if work.method not in FACTORED:
            self._weights_per_edge()
        self._tables(TABLES)
        self.memory.phase = DRAW
        if self._blocks:
            self._new(SAMPLER_OF_BLOCKS, *[LONG * work.users] * 3)
            self._then_free(LONG * work.users, LONG * work.users)
        else:
            self._sampler_of_epochs()

    def _weights_per_edge(self) -> None:
        """Two directions, each in both orders, and the permutation between them, which a sort finds."""
        edges = self._work.interactions
        with self._passing(INT * edges, LONG * edges):
            self._then_free(LONG * edges, (INT + LONG) * edges)
            self._new(WEIGHTS, self._work.offset_bytes * edges)
        self._new(WEIGHTS, *[FLOAT * edges] * 4)

    def _sampler_of_epochs(self) -> None:
        edges, users = self._work.interactions, self._work.users
        self._new(SAMPLER, LONG * users, INT * edges)
        with self._passing(BYTE * edges):
            self._new(SAMPLER, LONG * edges)
        self._new(SAMPLER, LONG * users, LONG * users)
        with self._passing(LONG * edges):  # edge
            in_row = self._replacing(LONG * edges, LONG * edges)
            keys = self._replacing(LONG * edges, LONG * edges)
            gaps = self._replacing(LONG * edges, LONG * edges)
            self._new(SAMPLER, LONG * edges)
            self.memory.give(in_row, keys, gaps)

    def _replacing(self, old: float, new: float) -> Block:
        """A tensor made of another, which is then free."""
        with self._passing(old):
            (block,) = self._new(PASSING, new)
        return block

    # ---------------------------------------------------------------- epochs

    def epoch(self) -> None:
        """Draws, steps and validation, as `Loop._run_epoch`."""
        triples = self._draw()
        self._steps()
        for _ in range(1, self._draws):
            drawn = self._draw()
            self.memory.give(*triples)
            triples = drawn
        self.memory.give(*triples)
        if self._work.validated:
            self._validate()

    def _draw(self) -> list[Block]:
        self.memory.phase = DRAW
        return self._draw_block() if self._blocks else self._draw_epoch()

    def _draw_epoch(self) -> list[Block]:
        """`Sampler.epoch`: exact negatives, then a random order."""
        edges = self._work.interactions
        with self._passing(INT * edges, INT * edges):
            with self._passing(LONG * edges):  # users
                bound = self._replacing(LONG * edges, LONG * edges)
                r = self._replacing(LONG * edges, LONG * edges)
                self.memory.give(bound)
                keys = self._replacing(LONG * edges, LONG * edges)
                with self._passing(LONG * edges, LONG * edges):
                    (below,) = self._new(PASSING, LONG * edges)
                with self._passing(LONG * edges):
                    (negatives,) = self._new(PASSING, INT * edges)
                self.memory.give(below, r, keys)
            (order,) = self._new(PASSING, INT * edges)
            self._then_free(LONG * edges, LONG * edges, INT * edges, (LONG + INT) * edges)
            weight = self._new(TRIPLES, FLOAT * edges)
            with self._passing(INT * edges):
                self.memory.give(order)
                drawn = self._new(TRIPLES, *[INT * edges] * 3)
            self.memory.give(negatives)
        return drawn + weight

    def _draw_block(self) -> list[Block]:
        """`BlockSampler.block`: places, their interactions, then a search in every user's row."""
        long, short = LONG * self._triples, INT * self._triples
        with self._passing(long):  # places
            (numbers,) = self._new(PASSING, long)
            column = self._replacing(long, long)
            self._then_free(long, long)
            self.memory.give(column)
            with self._passing(long):  # users
                with self._passing(long):
                    (edges,) = self._new(PASSING, long)
                self.memory.give(numbers)
                drawn = self._new(TRIPLES, short, short)
                with self._passing(long):  # degrees
                    with self._passing(long, long):
                        (r,) = self._new(PASSING, long)
                    with self._passing(long, long, long, long, short, self._triples):  # first, low, high, middle, there
                        self._then_free(long, long)
                drawn += self._new(TRIPLES, short)
                self.memory.give(r)
                drawn += self._new(TRIPLES, short)
            self.memory.give(edges)
        return drawn

    def _steps(self) -> None:
        """`RecordedSteps`; several devices do not record."""
        self.memory.phase = STEP
        if self._work.devices > 1:
            self.memory.give(*self._step(MAIN))
        elif not self._recorded:
            self._record()
            self._recorded = True

    def _record(self) -> None:
        """`cuda_graph.recorded`: real steps on a stream of their own, then one into a pool that stays."""
        self._new(TRIPLES, *[INT * self._triples] * 4)
        before = self._tables(COPIES)
        with self.memory.on(ASIDE):
            for _ in range(WARM_UP_RUNS):
                gradients = self._step(ASIDE)
                self.memory.give(*self._moments())  # zeros, from which the moments are put back
                self.memory.give(*gradients)
        self.memory.empty_cache()
        with self.memory.on(RECORDING):
            self._step(RECORDING)
        self.memory.give(*before)

    def _step(self, stream: str) -> list[Block]:
        """`PlainSteps.step`; its gradients are left."""
        work, numbers = self._work, self._work.numbers
        batch = self._new(OF_BATCH, *[INT * work.batch] * 4)
        self._layout()
        with self._passing(3 * INT * work.batch):
            flags = self._new(OF_BATCH, work.nodes)
            self._then_free(3 * LONG * work.batch)
        final = self._propagated(PROPAGATION)
        rows = self._rows_of_batch(stream)
        of_tables = self._new(GRADIENTS, 2 * FLOAT * numbers)  # of the propagated and of the trained
        self.memory.give(*final, *rows)
        back = self._propagated(PROPAGATION)
        gradients = self._tables(GRADIENTS)  # both added up
        self.memory.give(*back, *of_tables, *flags, *batch)
        if not self._has_moments:
            self._has_moments = True
            self._moments()
        return gradients

    def _moments(self) -> list[Block]:
        work = self._work
        sizes = [FLOAT * rows * work.columns for rows in (work.users, work.users, work.items, work.items)]
        return self._new(MOMENTS, *sizes)

    def _propagated(self, name: str) -> list[Block]:
        """`_Matrix.polynomial`: a table of sources at a time, and the sums that the next one is made of."""
        numbers, source = self._work.numbers, self._source
        if self._work.layers == 0:
            return self._tables(name)
        sources = self._new(name, source * numbers)
        for _ in range(self._work.layers - 1):
            sums = self._new(name, FLOAT * numbers)
            if source == FLOAT and self._work.method in FACTORED:  # in place
                self.memory.give(*sources)
                sources = sums
                continue
            following = self._new(name, source * numbers)
            self.memory.give(*sums, *sources)
            sources = following
        sums = self._new(name, FLOAT * numbers)
        self.memory.give(*sources)
        return sums

    def _rows_of_batch(self, stream: str) -> list[Block]:
        """What a loss keeps for its backward pass: no rows where one kernel reads the tables."""
        work = self._work
        if work.method != "softmax":
            return self._new(OF_BATCH, 2 * FLOAT * work.batch)  # at most: scores of positives and negatives
        self._workspace(stream)
        if work.devices > 1:  # of users and positives: own columns, then all of them, of length one, and gradients
            widths = [work.columns] * 2 + [work.embedding_size] * 6
            return self._new(OF_BATCH, *[FLOAT * work.batch * width for width in widths])
        numbers = work.batch * work.columns
        with self._passing(self._source * numbers, self._source * numbers):  # of length one
            kept = self._new(OF_BATCH, FLOAT * numbers, FLOAT * numbers)
            logits = CANDIDATE_ROWS * min(CANDIDATE_ROWS, work.batch)
            self._then_free(FLOAT * logits, self._source * logits)
        return kept

    def _layout(self) -> None:
        """`SparseLayout`, made by the first step; at most, as which rows are cut depends on their degrees."""
        if self._has_layout:
            return
        self._has_layout = True
        of_sides = []
        for rows in (self._work.users, self._work.items):
            chunks = rows + self._work.interactions / CHUNK
            with self._passing(*[LONG * chunks] * 3, chunks, chunks):  # row, number, start, length, kind
                self._then_free(LONG * chunks, INT * chunks, LONG * chunks)
                with self._passing(LONG * chunks):  # order
                    self._then_free(LONG * chunks, (LONG + BYTE) * chunks)
                    of_sides += self._new(CHUNKS, INT * chunks, self._work.offset_bytes * chunks, chunks, chunks)
        both = self._work.nodes + 2 * self._work.interactions / CHUNK
        self._new(CHUNKS, INT * both, self._work.offset_bytes * both, both, both)
        self.memory.give(*of_sides)
        self._new(WEIGHTS, FLOAT * self._work.nodes)

    # ---------------------------------------------------------------- validation

    def _validate(self) -> None:
        """`make_validator`, then the copy of the best tables."""
        work = self._work
        self.memory.phase = VALIDATE
        vectors = self._propagated(VECTORS)
        if work.devices > 1:  # every rank ranks by all columns
            whole = self._tables(VECTORS, work.embedding_size)
            self.memory.give(*vectors)
            vectors = whole
        if work.method == "softmax":
            units = self._tables(VECTORS, work.embedding_size)
            self.memory.give(*vectors)
            vectors = units
        self._workspace(MAIN)
        self.memory.give(*self._scores(), *vectors)
        if not self._has_best:
            self._has_best = True
            self._tables(BEST)

    def _scores(self) -> list[Block]:
        """A block is there until the next one is."""
        work = self._work
        row = FLOAT * work.items
        users = work.users if work.validation_users is None else min(work.validation_users, work.users)
        at_once = min(users, max(1, SCORE_BLOCK // row))
        second = min(at_once, users - at_once)
        return self._new(SCORES, at_once * row, *([second * row] if second else []))
