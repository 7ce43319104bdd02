"""Memory of training on CPU: tables, Adam state, edges and a block, never interactions x width or users x items."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

USERS, ITEMS, EDGES, WIDTH = 20_000, 5_000, 1_000_000, 256
TABLES = 4 * WIDTH * (USERS + ITEMS)

# A process of its own, because the peak that the system reports never goes down.
SCRIPT = f"""
import json
import torch
from benchmarks.graphs import Shape, generated
from benchmarks.memory import peak_memory
from caged.graph import BipartiteGraph, Epoch, Sampler
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.seeding import Generators
from caged.training.step import make_steps

log = generated(Shape({USERS}, {ITEMS}, {EDGES}))
before = peak_memory()
graph = BipartiteGraph.from_interactions(log)
method = LightGCN(LightGCNConfig(embedding_size={WIDTH}, layers=3))
generators = Generators(1)
method.prepare(graph, generators)
optimizer = torch.optim.Adam(method.parameters(method.stages()[0]), fused=True)
epoch = Sampler(graph, 2048).epoch(generators["sampling"])
steps = make_steps(method, optimizer, generators, record=True)
steps.run([Epoch(*(part[:2] for part in epoch.parts))])
print(json.dumps([before, peak_memory()]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read through getrusage")
def test_training_memory_is_tables_and_edges():
    """The bound, in bytes:

    9 tables: parameters, gradient, two Adam moments, propagated vectors, their gradient, and at most three more while
        autograd adds up the gradients of the loss and of the L2 term;
    160 per edge: the pattern in both directions twice (row order and internal order), two weights in both edge orders,
        the sampler's keys, an epoch of triples, and what sorting needs for a moment;
    one bit per user and item, because that fits the sampler's stated budget here; 64 MiB for blocks.

    One message per edge (E x K numbers) would be 1 GB on its own.
    """
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    bound = 9 * TABLES + 160 * EDGES + USERS * ITEMS // 8 + 64 * 2**20
    assert bound < 4 * EDGES * WIDTH / 2
    before, after = json.loads(done.stdout)
    assert 4 * TABLES < after - before < bound  # parameters, gradient and moments are there for certain
