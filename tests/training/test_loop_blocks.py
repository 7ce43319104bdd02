"""Training on blocks of batches: nothing is forgotten between them, and a stopped run ends as if it was not."""

from __future__ import annotations

import pytest
import torch

from caged.graph import BipartiteGraph, block_sampling
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.seeding import Generators
from caged.training import Interrupted, Loop, TrainConfig, load_checkpoint
from tests.models.logs import skewed

CONFIG = TrainConfig(epochs=4, batch_size=48, learning_rate=0.01, patience=None, checkpoint_seconds=0)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Of two batches, the last one of an epoch of one."""
    monkeypatch.setattr(block_sampling, "BLOCKS_ABOVE", 0)
    monkeypatch.setattr(block_sampling, "BLOCK_TRIPLES", 100)


class Recorder:
    def __init__(self):
        self.losses = []

    def epoch(self, line):
        self.losses.append(line["loss"])


def trained(folder=None, *, stop=lambda: False, device="cpu", **options):
    """Tables and losses."""
    config = TrainConfig(**{**vars(CONFIG), **options})
    method, recorder = LightGCN(LightGCNConfig(embedding_size=8)), Recorder()
    graph = BipartiteGraph.from_interactions(skewed(), device, config.engine)
    stored = None if folder is None else load_checkpoint(folder)
    loop = Loop(
        method,
        graph,
        config,
        Generators(1, device),
        None,
        folder=folder,
        stored=stored,
        observers=(recorder,),
        stop_requested=stop,
    )
    loop.run()
    return torch.cat([method.encoder.users, method.encoder.items]).detach().cpu(), recorder.losses


def test_blocks_are_walked_to_the_end(monkeypatch):
    """An epoch in blocks is the same epoch in one block, where what is drawn does not depend on the size of blocks."""
    monkeypatch.setattr(
        block_sampling.BlockSampler,
        "_draw_negatives",
        lambda self, users, generator: torch.zeros_like(users, dtype=self.graph.items.dtype),
    )
    in_blocks, losses = trained()
    monkeypatch.setattr(block_sampling, "BLOCK_TRIPLES", 10**6)
    at_once, whole_losses = trained()
    assert torch.equal(in_blocks, at_once)
    assert [line["total"] for line in losses] == pytest.approx([line["total"] for line in whole_losses], rel=1e-6)
    assert losses[-1]["bpr"] < losses[0]["bpr"]


@pytest.mark.parametrize("sampler", ["interaction", "user_uniform"])
def test_a_resumed_run_ends_as_if_it_had_not_been_stopped(tmp_path, sampler):
    uninterrupted, losses = trained(sampler=sampler)
    answers = iter([False, True])
    with pytest.raises(Interrupted):
        trained(tmp_path, sampler=sampler, stop=lambda: next(answers))
    resumed, later_losses = trained(tmp_path, sampler=sampler)
    assert torch.equal(resumed, uninterrupted)
    assert later_losses == losses[2:]


@pytest.mark.gpu
def test_recorded_steps_take_blocks_too():
    recorded, losses = trained(device="cuda", capture=True, precision="float32")
    plain, plain_losses = trained(device="cuda", capture=False, precision="float32")
    torch.testing.assert_close(recorded, plain, rtol=1e-3, atol=1e-4)
    for mine, other in zip(losses, plain_losses, strict=True):
        assert mine == pytest.approx(other, rel=1e-4)
