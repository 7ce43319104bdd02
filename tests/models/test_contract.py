"""What every registered method must do. A new method is found here through the registry."""

from __future__ import annotations

import dataclasses
import json
from functools import cache

import numpy as np
import pytest
import torch

from caged.config import build, describe, to_dict
from caged.data.seen import Seen
from caged.errors import ConfigError
from caged.evaluation.evaluate import make_validator
from caged.evaluation.topk import top_k
from caged.graph import BipartiteGraph, Engine, Sampler
from caged.models import METHODS, register
from caged.models.mostpop import MostPopular, MostPopularConfig
from caged.seeding import Generators
from caged.training import Loop, TrainConfig
from tests.models.logs import checkerboard, skewed

QUICK = TrainConfig(epochs=3, batch_size=64, learning_rate=0.01)


def small(config_class):
    """The defaults of a method, narrowed where it has a width."""
    names = {field.name for field in dataclasses.fields(config_class)}
    return config_class(**({"embedding_size": 8} if "embedding_size" in names else {}))


def fitted(name, log, seed=1, config=QUICK, valid=None, device="cpu"):
    known = METHODS[name]
    method = known.method(small(known.config))
    validate = make_validator(log, valid, device=device, k=5, metrics=("recall@5",)) if valid is not None else None
    graph = BipartiteGraph.from_interactions(log, device)
    Loop(method, graph, config, Generators(seed, device), validate, monitor="recall@5").run()
    return method


@cache
def fitted_once(name):
    """For those who only ask it."""
    return fitted(name, skewed())


@pytest.mark.parametrize("name", METHODS)
class TestEveryMethod:
    def test_scores_are_finite_and_seen_items_are_masked(self, name):
        log = skewed()
        method = fitted_once(name)
        everyone = np.arange(log.user_count)
        scores = method.scorer()(torch.from_numpy(everyone))
        assert scores.shape == (log.user_count, log.item_count)
        assert torch.isfinite(scores).all()
        lists = top_k(method.scorer(), everyone, 10, seen=Seen(log))
        listed = {(u, i) for u, row in zip(lists.users, lists.items, strict=True) for i in row if i >= 0}
        assert not listed & set(zip(log.users.tolist(), log.items.tolist(), strict=True))

    def test_same_seed_same_scores(self, name):
        log = skewed()
        everyone = torch.arange(log.user_count)
        assert torch.equal(fitted(name, log).scorer()(everyone), fitted_once(name).scorer()(everyone))

    def test_state_restores_the_scores(self, name):
        log = skewed()
        method = fitted_once(name)
        known = METHODS[name]
        other = known.method(small(known.config))
        other.prepare(BipartiteGraph.from_interactions(log), Generators(99))
        other.load_state(method.state().clone())
        everyone = torch.arange(log.user_count)
        assert torch.equal(other.scorer()(everyone), method.scorer()(everyone))
        json.dumps(method.state().scalars)

    def test_the_serving_state_restores_the_scores(self, name):
        """Without anything that only training needs; and a whole state does as well."""
        log = skewed()
        method = fitted_once(name)
        known = METHODS[name]
        everyone = torch.arange(log.user_count)
        assert method.serving_state().tensors.keys() <= method.state().tensors.keys()
        for kept in (method.serving_state(), method.state()):
            other = known.method(small(known.config))
            other.prepare(BipartiteGraph.from_interactions(log), Generators(99))
            other.load_serving_state(kept.clone())
            assert torch.equal(other.scorer()(everyone), method.scorer()(everyone))

    def test_serving_vectors_reproduce_the_scores(self, name):
        log = skewed()
        scorer = fitted_once(name).scorer()
        if scorer.vectors is None:
            pytest.skip("no dot product behind these scores")
        everyone = torch.arange(log.user_count)
        torch.testing.assert_close(scorer.vectors.users @ scorer.vectors.items.T, scorer(everyone))

    def test_configuration_round_trip(self, name):
        config_class = METHODS[name].config
        config = small(config_class)
        assert build(config_class, json.loads(json.dumps(to_dict(config))), "method") == config

    def test_every_option_says_what_it_is_and_where_its_default_comes_from(self, name):
        for info in describe(METHODS[name].config):
            assert info.help, info
            assert info.source, info

    def test_losses_are_scalars_with_named_parts(self, name):
        log = skewed()
        known = METHODS[name]
        method = known.method(small(known.config))
        if not method.stages():
            pytest.skip("closed form")
        graph = BipartiteGraph.from_interactions(log)
        method.prepare(graph, Generators(1))
        batch = next(iter(Sampler(graph, 32).epoch(torch.Generator().manual_seed(0))))
        losses = method.loss(batch)
        assert losses.total.shape == ()
        assert losses.parts

    @pytest.mark.gpu
    def test_cuda_agrees_with_cpu(self, name):
        log = skewed()
        on_cpu = fitted(name, log)
        known = METHODS[name]
        on_gpu = known.method(small(known.config))
        exact = Engine(precision="float32")
        on_gpu.prepare(BipartiteGraph.from_interactions(log, "cuda", exact), Generators(1, "cuda"))
        on_gpu.load_state(on_cpu.state().clone())
        everyone = torch.arange(log.user_count)
        scores = on_gpu.scorer()(everyone.cuda()).cpu()
        torch.testing.assert_close(scores, on_cpu.scorer()(everyone), rtol=1e-4, atol=1e-5)
        fitted(name, log, device="cuda")


def test_mostpop_scores_are_degrees():
    log = skewed()
    scores = fitted("mostpop", log).scorer()(torch.tensor([0, 7]))
    assert scores.tolist() == [log.item_degrees.tolist()] * 2


def test_a_checkerboard_is_solved():
    """Users of one colour like the items of that colour: the held-out item must rank first for everybody."""
    held_out = {user: (user + 4) % 12 for user in range(0, 12, 3)}
    log = checkerboard(12, held_out)
    method = fitted("lightgcn", log, config=TrainConfig(epochs=60, batch_size=32, learning_rate=0.02))
    lists = top_k(method.scorer(), np.array(sorted(held_out)), 1, seen=Seen(log))
    assert lists.items[:, 0].tolist() == [held_out[user] for user in sorted(held_out)]


def test_registering_a_name_twice_is_an_error():
    with pytest.raises(ConfigError, match="registered already"):
        register("mostpop", MostPopular, MostPopularConfig, "again")
