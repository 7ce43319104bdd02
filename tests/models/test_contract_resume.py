"""Every method with epochs, interrupted after each of them, ends where an uninterrupted run ends."""

from __future__ import annotations

import pytest
import torch

from caged.data import carve_validation
from caged.evaluation.evaluate import make_validator
from caged.graph import BipartiteGraph
from caged.models import METHODS
from caged.seeding import Generators
from caged.training import Interrupted, Loop, TrainConfig, load_checkpoint
from tests.models.logs import skewed

EPOCHS = 3
ITERATIVE = [name for name, known in METHODS.items() if known.method(known.config()).stages()]


def run(name, folder, stop_after=None):
    known = METHODS[name]
    method = known.method(known.config(embedding_size=8))
    train, valid = carve_validation(skewed(), seed=1)
    validate = make_validator(train, valid, k=5, metrics=("recall@5",))
    calls = iter(range(1, 100))
    loop = Loop(
        method,
        BipartiteGraph.from_interactions(train),
        TrainConfig(epochs=EPOCHS, batch_size=64, learning_rate=0.01, sampler="user_uniform"),
        Generators(1),
        validate,
        monitor="recall@5",
        folder=folder,
        stored=load_checkpoint(folder),
        stop_requested=lambda: next(calls) == stop_after,
    )
    loop.run()
    return method


@pytest.fixture(scope="module", params=ITERATIVE)
def whole(request, tmp_path_factory):
    """A method, and its state after a run that nobody interrupted."""
    return request.param, run(request.param, tmp_path_factory.mktemp("whole")).state()


@pytest.mark.parametrize("stop_after", range(1, EPOCHS + 1))
def test_resumed_equals_uninterrupted(whole, stop_after, tmp_path):
    name, expected = whole
    with pytest.raises(Interrupted):
        run(name, tmp_path / "stopped", stop_after)
    found = run(name, tmp_path / "stopped").state()
    assert found.scalars == expected.scalars
    assert found.tensors.keys() == expected.tensors.keys()
    for key, value in expected.tensors.items():
        assert torch.equal(found.tensors[key], value), key
