"""The testable properties of GALORE, and its two stages. Its graphs: `test_graph.py`."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from caged.config import describe
from caged.data import carve_validation
from caged.errors import ConfigError
from caged.evaluation.evaluate import make_validator
from caged.graph import Batch, BipartiteGraph, Engine, Tables
from caged.models.contract import EpochContext
from caged.models.galore.graph import AugmentedGraph
from caged.models.galore.method import GALORE, GALOREConfig, official_l2, pooling
from caged.models.lightgcn import L2_RANGE, LightGCN, LightGCNConfig
from caged.models.losses import bpr_with_l2, scaled_bpr_with_l2
from caged.runs.spec import resolve
from caged.seeding import Generators
from caged.training import Interrupted, Loop, TrainConfig, load_checkpoint
from tests.models.logs import skewed
from tests.models.short_runs import assert_same_training, padded, prepared, some_batch, trained

WIDTH = 8
NEUTRAL = {"drop_rate": 0.0, "candidate_heads": 0, "mixup_bound": 0.0, "finetune_epochs": None}


def make(**options):
    return GALORE(GALOREConfig(embedding_size=WIDTH, **options))


def finetuning(graph, epoch=1, **options):
    """As in the first epoch of fine-tuning."""
    method = prepared(make(**options), graph)
    method.begin_epoch(EpochContext("finetune", epoch, 1, None))
    return method


def from_lightgcns_start(log, **options):
    """GALORE that fine-tunes from the values at which a LightGCN of the same seed begins."""
    start = prepared(LightGCN(LightGCNConfig(embedding_size=WIDTH)), BipartiteGraph.from_interactions(log))
    method = make(**options)
    method.start_from(Tables(*(table.detach().clone() for table in start.encoder.layer0)))
    return method


class Recorder:
    def __init__(self):
        self.records = []

    def epoch(self, record):
        self.records.append({key: value for key, value in record.items() if key != "seconds"})


def loop(method, folder=None, *, observers=(), stop=lambda: False, epochs=3):
    train, valid = carve_validation(skewed(), seed=1)
    return Loop(
        method,
        BipartiteGraph.from_interactions(train),
        TrainConfig(epochs=epochs, batch_size=64, learning_rate=0.01, checkpoint_seconds=0),
        Generators(1),
        make_validator(train, valid, k=5, metrics=("recall@5",)),
        monitor="recall@5",
        folder=folder,
        stored=None if folder is None else load_checkpoint(folder),
        observers=observers,
        stop_requested=stop,
    )


# ---------------------------------------------------------------- neutral setting


@pytest.mark.parametrize("item_keep", ["paper", "code"])
@pytest.mark.parametrize("sampler", ["interaction", "user_equal"])
def test_neutral_fine_tuning_is_lightgcn_bit_for_bit(sampler, item_keep):
    log = skewed(per_user=7)  # 280 interactions: the last batch is padded
    method = from_lightgcns_start(log, **NEUTRAL, item_keep=item_keep)
    assert_same_training(method, LightGCN(LightGCNConfig(embedding_size=WIDTH)), log, sampler=sampler)
    assert method.stage == "finetune"


@pytest.mark.parametrize(
    "change",
    [
        {"drop_rate": 0.1},
        {"edge_sampling": "with"},
        {"candidate_heads": 3, "clusters": 1},
        {"mixup_bound": 0.5},
        {"pool_layer0": False},
        {"l2_form": "official"},
    ],
    ids="+".join,
)
def test_every_option_alone_makes_a_difference(change):
    log = skewed()
    neutral, _ = trained(from_lightgcns_start(log, **NEUTRAL), log, epochs=1)
    changed, _ = trained(from_lightgcns_start(log, **{**NEUTRAL, **change}), log, epochs=1)
    assert not torch.equal(neutral.encoder.users, changed.encoder.users)


def test_item_keep_makes_a_difference():
    graph = BipartiteGraph.from_interactions(skewed())
    kept = [finetuning(graph, item_keep=choice).augmented.weights.to_user > 0 for choice in ("paper", "code")]
    assert not torch.equal(*kept)


# ---------------------------------------------------------------- mixed negatives


def explicit_loss(final, batch, mix):
    """(7) with the mixed negatives written out."""
    users, positives = final.users[batch.users.long()], final.items[batch.positives.long()]
    negatives = (1 - mix)[:, None] * final.items[batch.negatives.long()] + mix[:, None] * positives
    return batch.weight @ F.softplus((users * (negatives - positives)).sum(1))


def test_scaling_the_margin_is_mixing_the_negative():
    """Value and gradients, through positive and negative."""
    graph = BipartiteGraph.from_interactions(skewed())
    batch = padded(some_batch(graph))
    batch = batch._replace(weight=batch.weight.double())
    generator = torch.Generator().manual_seed(0)
    mix = torch.rand(len(batch.users), generator=generator, dtype=torch.float64) * 0.5

    def tables():
        fresh = torch.Generator().manual_seed(1)
        shape = (graph.user_count + graph.item_count, 3)
        both = torch.randn(shape, generator=fresh, dtype=torch.float64).requires_grad_()
        return both, Tables(*both.split([graph.user_count, graph.item_count]))

    (ours, final), (reference, expected) = tables(), tables()
    found = scaled_bpr_with_l2(final, final, batch, 1 - mix, 0.0).total
    wanted = explicit_loss(expected, batch, mix)
    torch.testing.assert_close(found, wanted)
    found.backward()
    wanted.backward()
    torch.testing.assert_close(ours.grad, reference.grad)


def test_the_l2_term_is_lightgcns():
    graph = BipartiteGraph.from_interactions(skewed())
    method, batch = finetuning(graph), padded(some_batch(graph))
    vectors, layer0 = method.encoder(), method.encoder.layer0
    scale = torch.full((len(batch.users),), 0.7)
    mixed, plain = scaled_bpr_with_l2(vectors, layer0, batch, scale, 0.7), bpr_with_l2(vectors, layer0, batch, 0.7)
    assert torch.equal(mixed.parts["l2"], plain.parts["l2"])
    torch.testing.assert_close(mixed.total, mixed.parts["bpr"] + 0.7 * mixed.parts["l2"])


@pytest.mark.parametrize("bound", [0.0, 0.25, 0.5])
def test_mixed_negatives_lie_between_negative_and_positive_at_most_halfway(bound):
    graph = BipartiteGraph.from_interactions(skewed())
    method, drawn = finetuning(graph, mixup_bound=bound), []

    plain = method.ranking

    def watched(final, layer0, batch, l2, scale):
        drawn.append(1 - scale)
        return plain(final, layer0, batch, l2, scale)

    method.ranking = watched
    for _ in range(2):
        method.loss(some_batch(graph, size=2000))
    assert all(mix.shape == (2000,) for mix in drawn)  # one scalar per triple
    both = torch.cat(drawn)
    assert both.min() >= 0
    assert both.max() <= bound
    assert both.mean().item() == pytest.approx(bound / 2, abs=0.01)
    assert torch.equal(*drawn) == (bound == 0)  # drawn anew for each batch


# ---------------------------------------------------------------- the L2 term of the official code


def test_official_l2_by_hand():
    """Users (3, 4) and, in padding, (100, 0); positives (0, 5): |U|_F = 5, |I|_F = 5. The negative does not count."""
    final = Tables(torch.tensor([[3.0, 4.0], [100.0, 0.0]]), torch.tensor([[0.0, 5.0], [7.0, 7.0]]))
    batch = Batch(torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([1, 1]), torch.tensor([1.0, 0.0]))
    assert official_l2(final, batch).item() == 10
    twice = batch._replace(users=torch.tensor([0, 0]), weight=torch.tensor([0.5, 0.5]))
    assert official_l2(final, twice).item() == pytest.approx(50**0.5 + (25 + 98) ** 0.5)


def test_official_l2_is_of_propagated_rows_and_finite_at_zero():
    graph = BipartiteGraph.from_interactions(skewed())
    method, batch = finetuning(graph, l2_form="official", l2=0.5, mixup_bound=0.0), some_batch(graph)
    losses = method.loss(batch)
    expected = official_l2(method._propagated(batch), batch)
    torch.testing.assert_close(losses.parts["l2"], expected)
    torch.testing.assert_close(losses.total, losses.parts["bpr"] + 0.5 * expected)
    with torch.no_grad():
        for table in method.encoder.layer0:
            table.zero_()
    method.loss(batch).total.backward()
    assert all(torch.isfinite(table.grad).all() for table in method.encoder.parameters)


# ---------------------------------------------------------------- pooling and inference


def test_pooling_by_hand():
    config = GALOREConfig(layers=2, pool_layer0=False)
    assert pooling(config, "pretrain") == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert pooling(config, "finetune") == (0.0, 0.5, 0.5)
    assert pooling(GALOREConfig(layers=2), "finetune") == pooling(config, "pretrain")
    assert pooling(GALOREConfig(layers=2, layer_scale=3.0, pool_layer0=False), "finetune") == (0.0, 0.25, 0.75)


def test_no_layer_to_pool_is_an_error():
    with pytest.raises(ConfigError, match=r"method\.layers is 0.*pool_layer0"):
        GALOREConfig(layers=0, pool_layer0=False)
    assert pooling(GALOREConfig(layers=0), "finetune") == (1.0,)


def test_inference_does_not_depend_on_the_last_graph():
    graph = BipartiteGraph.from_interactions(skewed())
    method = finetuning(graph)
    before = method.scorer().vectors
    weights = method.augmented.weights.to_user.clone()
    method.begin_epoch(EpochContext("finetune", 2, 1, None))
    assert not torch.equal(method.augmented.weights.to_user, weights)
    assert all(torch.equal(*pair) for pair in zip(before, method.scorer().vectors, strict=True))
    plain = LightGCN(LightGCNConfig(embedding_size=WIDTH))
    plain.prepare(graph, Generators(1))
    plain.encoder.layer_weights = pooling(method.config, "finetune")
    assert torch.equal(plain.scorer().vectors.items, method.scorer().vectors.items)


def test_recommending_needs_no_augmented_graph():
    graph = BipartiteGraph.from_interactions(skewed())
    trained_method, loaded = finetuning(graph), prepared(make(), graph, seed=5)
    loaded.load_state(trained_method.state().clone())
    assert torch.equal(loaded.scorer().vectors.users, trained_method.scorer().vectors.users)
    assert loaded._augmented is None


# ---------------------------------------------------------------- stages


def test_stages():
    first, second = make().stages()
    assert (first.name, first.epochs) == ("pretrain", None)
    assert (second.name, second.epochs, second.fresh_optimizer) == ("finetune", 60, True)
    short = make(pretrain_epochs=7, finetune_epochs=None).stages()
    assert [stage.epochs for stage in short] == [7, None]


def test_the_first_stage_is_lightgcn_and_the_second_starts_from_its_best():
    records, plain = Recorder(), Recorder()
    seen = []

    class Spy(GALORE):
        def begin_epoch(self, ctx):
            super().begin_epoch(ctx)
            if ctx.stage == "finetune":
                seen.append(self.encoder.users.detach().clone())

    loop(Spy(GALOREConfig(embedding_size=WIDTH, finetune_epochs=2)), observers=(records,)).run()
    backbone = LightGCN(LightGCNConfig(embedding_size=WIDTH))
    loop(backbone, observers=(plain,)).run()
    assert [record["stage"] for record in records.records] == ["pretrain"] * 3 + ["finetune"] * 2
    for ours, theirs in zip(records.records, plain.records, strict=False):
        assert {**ours, "stage": None} == {**theirs, "stage": None}
    assert torch.equal(seen[0], backbone.encoder.users)
    logs = [record.get("diagnostics") for record in records.records]
    assert logs[:3] == [None] * 3
    assert all(log["distinct_edges"] > 0 and log["added_edges"] >= 0 for log in logs[3:])


def test_every_epoch_clusters_the_items_as_they_are_in_layer_0(monkeypatch):
    """(3) is of the current E^(0): not of propagated rows, and not of those that fine-tuning began with."""
    current, clustered = [], []
    rebuild = AugmentedGraph.rebuild

    class Spy(GALORE):
        def begin_epoch(self, ctx):
            if ctx.stage == "finetune":
                current.append(self.encoder.layer0.items.detach().clone())
            super().begin_epoch(ctx)

    def watched(self, items):
        clustered.append(items.clone())
        return rebuild(self, items)

    monkeypatch.setattr(AugmentedGraph, "rebuild", watched)
    loop(Spy(GALOREConfig(embedding_size=WIDTH, pretrain_epochs=1, finetune_epochs=3))).run()
    assert len(clustered) == 3
    assert all(torch.equal(*pair) for pair in zip(clustered, current, strict=True))
    assert not any(torch.equal(*pair) for pair in pairwise(current))


def test_fine_tuning_starts_with_a_fresh_optimiser():
    running = loop(make(finetune_epochs=1))
    running.run()
    steps = {int(values["step"]) for values in running.optimizer.state.values()}
    assert steps == {-(-running.graph.edge_count // 64)}  # one epoch of batches


def test_given_tables_take_the_place_of_the_first_stage():
    log = skewed()
    method = from_lightgcns_start(log)
    assert [stage.name for stage in method.stages()] == ["finetune"]
    given = [table.clone() for table in method._given]
    prepared(method, BipartiteGraph.from_interactions(log), seed=77)
    assert all(torch.equal(*pair) for pair in zip(method.encoder.layer0, given, strict=True))
    assert not any(table.requires_grad for table in method._given)


VARIANTS = {
    "default": {},
    "code": {"item_keep": "code", "edge_sampling": "with", "l2_form": "official"},
}


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS.keys())
def test_interrupted_after_every_epoch_of_both_stages(options, tmp_path):
    """Bit for bit the same tables and history: the streams of graphs and mixed negatives resume, too."""
    options = {**options, "pretrain_epochs": 2, "finetune_epochs": 3}
    whole, recorder = make(**options), Recorder()
    loop(whole, tmp_path / "whole", observers=(recorder,)).run()
    assert [record["stage"] for record in recorder.records] == ["pretrain"] * 2 + ["finetune"] * 3
    seen = []
    while len(seen) < len(recorder.records):
        piece = Recorder()
        with pytest.raises(Interrupted):
            loop(make(**options), tmp_path / "pieces", observers=(piece,), stop=lambda: True).run()
        assert len(piece.records) == 1
        seen += piece.records
    last = make(**options)
    loop(last, tmp_path / "pieces").run()
    assert seen == recorder.records
    assert last.state().scalars == whole.state().scalars == {"stage": "finetune"}
    for name, value in whole.state().tensors.items():
        assert torch.equal(last.state().tensors[name], value), name


# ---------------------------------------------------------------- configuration


def test_the_preset_of_the_code():
    spec = resolve("x", "galore", presets=("galore_code",))
    config = spec.config
    assert (config.item_keep, config.edge_sampling, config.pool_layer0, config.l2_form) == (
        "code",
        "with",
        False,
        "official",
    )
    assert (config.layers, config.embedding_size, config.l2, config.finetune_epochs) == (2, 64, 1e-4, 60)
    assert (spec.train.learning_rate, spec.train.batch_size) == (1e-3, 2048)


def test_the_search_space():
    searched = {info.name: info.search for info in describe(GALOREConfig) if info.search}
    own = {"drop_rate": (0.05, 0.1, 0.2, 0.3), "clusters": (1, 3, 5), "mixup_bound": (0.0, 0.25, 0.5)}
    assert searched == {"l2": L2_RANGE, **own}


# ---------------------------------------------------------------- CUDA


@pytest.mark.gpu
@pytest.mark.parametrize("backend", ["sparse", "dense"])
def test_a_recorded_step_sees_the_graph_of_each_epoch(backend):
    """Recorded once, replayed over epochs with graphs of their own: the losses of plain steps, to rounding."""
    log = skewed()
    losses = {}
    for capture in (True, False):
        graph = BipartiteGraph.from_interactions(log, "cuda", Engine(backend, "float32"))
        config = TrainConfig(epochs=4, batch_size=64, learning_rate=0.01, capture=capture)
        recorder = Recorder()
        method = make(finetune_epochs=4, mixup_bound=0.0)
        Loop(method, graph, config, Generators(1, "cuda"), None, observers=(recorder,)).run()
        losses[capture] = [record["loss"]["total"] for record in recorder.records]
    assert losses[True] == pytest.approx(losses[False], rel=1e-3)
