"""The work of one of P ranks, by itself: does it shrink with P as the model of docs/scale.md says?

python -m benchmarks.columns_check --out benchmarks/results/columns_check_cpu2.json

A rank gets its columns and no others, and one thread; what it would send comes back at once. So it works as it would on
one of P machines, but for the messages, which `benchmarks/columns.py` counts. Time is that of the processor, since
other programs may share the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.circumstances import circumstances
from benchmarks.columns_model import work
from benchmarks.graphs import Shape, generated
from benchmarks.timing import interleaved
from caged.columns import Columns, column_ranges
from caged.files import write_json
from caged.graph import BipartiteGraph, Sampler
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.optimiser import adam
from caged.page.text_table import plain_lines
from caged.seeding import Generators
from caged.training.step import PlainSteps

USERS, ITEMS, INTERACTIONS, WIDTH, LAYERS, BATCH, ROUNDS = 60_000, 20_000, 1_000_000, 64, 2, 8192, 5
CPU = torch.device("cpu")


class OneOf(Columns):
    """The first of so many ranks, without the others."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.own = column_ranges(WIDTH, size)[0]


def step_of(columns: Columns, graph: BipartiteGraph) -> Callable[[], float]:
    generators = Generators(1)
    method = LightGCN(LightGCNConfig(embedding_size=WIDTH, layers=LAYERS))
    method.columns = columns
    method.prepare(graph, generators)
    batch = next(iter(Sampler(graph, BATCH).epoch(generators["sampling"])))
    steps = PlainSteps(method, adam(method.parameters(method.stages()[0]), 1e-3, CPU))

    def measure() -> float:
        before = time.process_time()
        steps.step(batch)
        return time.process_time() - before

    return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    graph = BipartiteGraph.from_interactions(generated(Shape(USERS, ITEMS, INTERACTIONS)))
    taken = interleaved({str(size): step_of(OneOf(size), graph) for size in (1, 2, 4)}, ROUNDS)
    rows = [
        {
            "ranks": int(size),
            "cpu_seconds_per_step": value,
            "of_one": value / taken["1"],
            "by_the_model": work(WIDTH // int(size), WIDTH),
        }
        for size, value in taken.items()
    ]
    cells = [[f"{row['ranks']}", *(f"{row[key]:.3f}" for key in list(row)[1:])] for row in rows]
    print("\n".join(plain_lines(["ranks", "CPU s per step", "of one rank", "model"], cells)))
    if given.out is not None:
        shape = {"users": USERS, "items": ITEMS, "interactions": INTERACTIONS, "width": WIDTH, "layers": LAYERS}
        threads = {"batch_size": BATCH, "threads": torch.get_num_threads()}
        write_json(given.out, {**shape, **threads, "rows": rows, **circumstances("benchmarks.columns_check")})


if __name__ == "__main__":
    main()
