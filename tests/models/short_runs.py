"""Short training runs of a method, and batches to try its loss on."""

from __future__ import annotations

import torch

from caged.evaluation.evaluate import make_validator
from caged.graph import Batch, BipartiteGraph
from caged.seeding import Generators
from caged.training import Loop, TrainConfig


def prepared(method, graph, seed=1):
    method.prepare(graph, Generators(seed))
    return method


def trained(method, log, *, epochs=3, valid=None, seed=1, **options):
    """The method after a few epochs, and the loss of each of them."""
    losses = []

    class Watch:
        def epoch(self, record):
            losses.append(record["loss"]["total"])

    config = TrainConfig(**{"epochs": epochs, "batch_size": 64, "learning_rate": 0.01, **options})
    validate = None if valid is None else make_validator(log, valid, k=5, metrics=("recall@5",))
    graph = BipartiteGraph.from_interactions(log)
    loop = Loop(method, graph, config, Generators(seed), validate, monitor="recall@5", observers=(Watch(),))
    loop.run()
    return method, losses


def assert_same_training(method, other, log, **options):
    """Two methods go through the same losses and end in the same state, bit for bit."""
    (method, losses), (other, other_losses) = (trained(each, log, **options) for each in (method, other))
    assert losses == other_losses
    mine, theirs = method.state().tensors, other.state().tensors
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        assert torch.equal(value, theirs[name]), name
    everyone = torch.arange(log.user_count)
    assert torch.equal(method.scorer()(everyone), other.scorer()(everyone))


def some_batch(graph, size=16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    users = torch.randint(graph.user_count, (size,), generator=generator, dtype=torch.int32)
    items = torch.randint(graph.item_count, (2, size), generator=generator, dtype=torch.int32)
    return Batch(users, items[0], items[1], torch.full((size,), 1 / size))


def padded(batch, by=3):
    """The same batch with triples of weight zero at its end."""
    return Batch(*(torch.nn.functional.pad(part, (0, by)) for part in batch))
