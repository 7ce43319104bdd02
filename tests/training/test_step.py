"""Recorded steps do what plain steps do."""

from __future__ import annotations

import pytest
import torch

from caged.graph import BipartiteGraph, Engine
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.seeding import Generators
from caged.training import Loop, TrainConfig
from tests.models.logs import skewed


def trained(device, batch_size=48, make=LightGCN, **options):
    """Tables and loss history of a short training run."""
    losses = []

    class Recorder:
        def epoch(self, record):
            losses.append(record["loss"])

    config = TrainConfig(epochs=4, batch_size=batch_size, learning_rate=0.01, patience=None, **options)
    method = make(LightGCNConfig(embedding_size=16, l2=1e-2))
    graph = BipartiteGraph.from_interactions(skewed(), device, config.engine)
    Loop(method, graph, config, Generators(1, device), None, observers=(Recorder(),)).run()
    return torch.cat([method.encoder.users, method.encoder.items]).detach().cpu(), losses


def test_capture_is_ignored_on_cpu():
    assert torch.equal(trained("cpu", capture=True)[0], trained("cpu", capture=False)[0])


@pytest.mark.gpu
@pytest.mark.parametrize("backend", ["sparse", "dense"])
def test_recorded_equals_plain(backend):
    recorded, recorded_losses = trained("cuda", capture=True, backend=backend, precision="float32")
    plain, plain_losses = trained("cuda", capture=False, backend=backend, precision="float32")
    torch.testing.assert_close(recorded, plain, rtol=1e-3, atol=1e-4)
    for mine, other in zip(recorded_losses, plain_losses, strict=True):
        assert mine == pytest.approx(other, rel=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("batch_size", [200, 1000])
def test_epochs_shorter_than_the_warm_up_are_recorded_too(batch_size):
    recorded, _ = trained("cuda", batch_size, capture=True, precision="float32")
    plain, _ = trained("cuda", batch_size, capture=False, precision="float32")
    torch.testing.assert_close(recorded, plain, rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
def test_recording_draws_nothing_from_the_random_streams():
    """The sampled batches of a recorded run are those of a plain one, the first epoch included."""
    assert trained("cuda", capture=True)[1][0] == pytest.approx(trained("cuda", capture=False)[1][0], rel=1e-4)


class Waits(LightGCN):
    """A loss that reads a number back, which no recording allows."""

    def loss(self, batch):
        losses = super().loss(batch)
        return losses._replace(total=losses.total * (1.0 if losses.total.item() > -1 else 2.0))


@pytest.mark.gpu
def test_a_step_that_cannot_be_recorded_runs_as_plain_calls(caplog):
    recorded, _ = trained("cuda", capture=True, precision="float32", make=Waits)
    plain, _ = trained("cuda", capture=False, precision="float32")
    torch.testing.assert_close(recorded, plain, rtol=1e-3, atol=1e-4)
    assert "cannot be recorded" in caplog.text


def test_engine_follows_the_configuration():
    assert TrainConfig(backend="dense", precision="tf32").engine == Engine("dense", "tf32")
