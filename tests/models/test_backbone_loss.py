"""The choice of a loss: which options belong to it, its properties on batches, and every method that takes it."""

from __future__ import annotations

import math

import pytest
import torch

from caged.config import build
from caged.data import carve_validation
from caged.errors import ConfigError
from caged.graph import SAMPLERS, Batch, BipartiteGraph, OwnedItems, Sampler, Tables
from caged.models import METHODS
from caged.models import backbone_loss as module
from caged.models.backbone_loss import SoftmaxLoss, SoftmaxOptions
from caged.models.caged.method import CAGED, CAGEDConfig
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.models.sampled_softmax import Problem, sampled_softmax, unit_rows
from caged.models.softmax import Softmax, SoftmaxConfig
from caged.seeding import Generators
from caged.training import Loop, TrainConfig
from tests.graph.graphs import graph_of, random_graph
from tests.models.logs import skewed
from tests.models.short_runs import assert_same_training, padded, prepared, some_batch, trained

TAKE_IT = ["lightgcn", "caged", "adjnorm", "galore", "apda", "ips_aggregation"]
OWN_LOSS = ["reg", "ips", "macr", "lightgcn_bce", "advdrop"]
SMALL = {"embedding_size": 8}


def softmax_of(graph, sampler="interaction", **options):
    loss = SoftmaxLoss(SoftmaxOptions(**options), graph)
    loss.follow(Sampler(graph, 16, sampler))
    return loss


def vectors_of(graph, width=6, seed=3):
    draw = torch.Generator().manual_seed(seed)
    return Tables(*(torch.randn(rows, width, generator=draw) for rows in (graph.user_count, graph.item_count)))


def batch_of(graph, size=16, seed=0):
    """A batch that a sampler could have drawn."""
    return next(iter(Sampler(graph, size).epoch(torch.Generator().manual_seed(seed))))


# ---------------------------------------------------------------- options


@pytest.mark.parametrize("name", TAKE_IT)
def test_softmax_options_are_refused_under_bpr(name):
    for key, value in {
        "temperature": 0.2,
        "gamma": 0,
        "candidates": "batch",
        "candidate_rows": 9,
        "known": "keep",
    }.items():
        with pytest.raises(ConfigError, match=rf"method\.{key} is {value}, but method\.loss is bpr.*loss=softmax"):
            build(METHODS[name].config, {key: value}, "method")
    config = build(METHODS[name].config, {"loss": "softmax", "gamma": "0.3"}, "method")
    assert config.softmax == SoftmaxOptions(gamma=0.3)
    assert build(METHODS[name].config, {}, "method").softmax is None


@pytest.mark.parametrize("name", OWN_LOSS)
def test_methods_with_a_loss_of_their_own_have_no_such_option(name):
    with pytest.raises(ConfigError, match=r"unknown key 'method\.loss'"):
        build(METHODS[name].config, {"loss": "softmax"}, "method")


@pytest.mark.parametrize("name", [*TAKE_IT, "softmax"])
def test_uniform_candidates_have_no_popularity_to_take_out(name):
    chosen = {} if name == "softmax" else {"loss": "softmax"}
    with pytest.raises(ConfigError, match=r"method\.gamma is 0\.1.*set method\.gamma=0"):
        build(METHODS[name].config, {**chosen, "candidates": "uniform"}, "method")
    assert build(METHODS[name].config, {**chosen, "candidates": "uniform", "gamma": 0}, "method").softmax.gamma == 0


@pytest.mark.parametrize(
    ("key", "value"), [("temperature", 0), ("gamma", 1.5), ("gamma", -1.1), ("candidate_rows", 1), ("known", "drop")]
)
def test_values_out_of_range_are_refused(key, value):
    for name, chosen in (("softmax", {}), ("lightgcn", {"loss": "softmax"})):
        with pytest.raises(ConfigError, match=rf"method\.{key} is '?{value}"):
            build(METHODS[name].config, {**chosen, key: value}, "method")


# ---------------------------------------------------------------- properties of the loss


def test_zero_vectors_cost_the_logarithm_of_the_candidates():
    """gamma = 1 leaves no bias: every row costs log |C_b|, averaged with the weights."""
    graph = BipartiteGraph.from_interactions(skewed())
    batch = padded(batch_of(graph, 30), by=5)
    zeros = Tables(torch.zeros(graph.user_count, 4), torch.zeros(graph.item_count, 4))
    real = batch.positives[batch.weight > 0]
    sizes = torch.tensor([1 + int((real != item).sum()) for item in batch.positives], dtype=torch.float64)
    expected = float(batch.weight.double() @ sizes.log())
    assert softmax_of(graph, gamma=1.0).ranking(zeros, batch).item() == pytest.approx(expected, rel=1e-6)


def test_the_loss_by_hand():
    """Cosines 1 and 0 at tau 0.5, shares 3/4 and 1/4: row 0 is log(1 + exp(0 - 2 - g log(1/3))), g = 1 - gamma."""
    graph = graph_of([(0, 0), (1, 0), (2, 0), (3, 1)], 4, 3)
    loss = softmax_of(graph, temperature=0.5, gamma=0.25)
    users, items = torch.zeros(4, 2), torch.zeros(3, 2)
    users[0, 0] = items[0, 0] = 5.0
    users[3, 1] = items[1, 1] = 0.1
    batch = Batch(torch.tensor([0, 3]), torch.tensor([0, 1]), torch.tensor([2, 2]), torch.tensor([0.5, 0.5]))
    rows = [math.log1p(math.exp(-2 - 0.75 * math.log(share))) for share in (1 / 3, 3.0)]
    assert loss.ranking(Tables(users, items), batch).item() == pytest.approx(sum(rows) / 2, rel=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_free_scores_reproduce_information_with_that_much_popularity_taken_out(gamma):
    """One batch with each pair as often as its count; other copies of the positive are kept: every row its own key."""
    counts = torch.tensor([[4, 2, 1, 1], [1, 3, 3, 1], [2, 1, 1, 6]])
    pairs = [(u, i) for u in range(3) for i in range(4) for _ in range(int(counts[u, i]))]
    users, items = (torch.tensor(side) for side in zip(*pairs, strict=True))
    rows, shares = len(pairs), counts.sum(0).double() / counts.sum()
    bias = (gamma - 1) * shares.log()[items]
    weight, keys = torch.full((rows,), 1 / rows, dtype=torch.float64), torch.arange(rows)
    problem = Problem(weight, keys, bias, keys, bias, rows, operands=torch.float64)
    chosen = torch.eye(3, dtype=torch.float64)[users]
    scores = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([scores], max_iter=200, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        taken = scores.T[items]
        loss = sampled_softmax(chosen, taken, taken, problem)
        loss.backward()
        return loss

    optimizer.step(closure)
    chances = counts / counts.sum(1, keepdim=True)
    expected = chances.log() - gamma * shares.log()
    difference = scores.detach() - expected
    assert (difference - difference.mean(1, keepdim=True)).abs().max() < 1e-4


@pytest.mark.parametrize("candidates", ["batch", "uniform"])
def test_padding_changes_nothing(candidates):
    graph = BipartiteGraph.from_interactions(skewed())
    loss = softmax_of(graph, gamma=0.0, candidates=candidates)
    vectors, batch = vectors_of(graph), batch_of(graph)
    torch.testing.assert_close(loss.ranking(vectors, padded(batch)), loss.ranking(vectors, batch))


def test_the_order_within_a_chunk_changes_nothing_and_across_chunks_it_does():
    graph = BipartiteGraph.from_interactions(skewed())
    loss = softmax_of(graph, candidate_rows=8)
    vectors, batch = vectors_of(graph), batch_of(graph)
    within = torch.cat((torch.arange(7, -1, -1), torch.arange(15, 7, -1)))
    across = torch.arange(16).view(8, 2).T.flatten()
    value = loss.ranking(vectors, batch).item()
    assert loss.ranking(vectors, Batch(*(part[within] for part in batch))).item() == pytest.approx(value, rel=1e-6)
    assert loss.ranking(vectors, Batch(*(part[across] for part in batch))).item() != pytest.approx(value, rel=1e-4)


def test_one_real_row_costs_nothing_and_has_finite_gradients():
    graph = BipartiteGraph.from_interactions(skewed())
    method = prepared(Softmax(SoftmaxConfig(**SMALL, l2=0.0)), graph)
    method.ranking.follow(Sampler(graph, 16))
    batch = padded(batch_of(graph, 1), by=4)
    losses = method.loss(batch)
    assert losses.parts["softmax"].item() == 0
    losses.total.backward()
    assert all(torch.isfinite(table.grad).all() for table in method.encoder.parameters)


def test_lengths_of_vectors_do_not_matter():
    graph = BipartiteGraph.from_interactions(skewed())
    loss, vectors, batch = softmax_of(graph), vectors_of(graph), batch_of(graph)
    longer = Tables(vectors.users * 3, vectors.items * torch.rand(graph.item_count, 1).add(0.5))
    torch.testing.assert_close(loss.ranking(longer, batch), loss.ranking(vectors, batch))


@pytest.mark.parametrize("kind", SAMPLERS)
def test_shares_are_those_of_the_sampler(kind):
    graph = random_graph(edges=50)
    shares = Sampler(graph, 8, kind).positive_shares()
    loss = softmax_of(graph, kind)
    drawn = shares > 0
    torch.testing.assert_close(loss.log_shares[drawn].exp().double(), shares[drawn], rtol=1e-5, atol=0)
    buffer = loss.log_shares
    loss.follow(Sampler(graph, 8, "user_equal"))
    assert buffer is loss.log_shares  # a recorded step reads it


def test_an_item_that_is_never_drawn_is_no_candidate():
    """Item 2 belongs to nobody; as a positive, by hand, it costs only its own row."""
    graph = graph_of([(0, 0), (1, 1), (1, 0)], 2, 3)
    loss, vectors = softmax_of(graph), vectors_of(graph)
    users, items = torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2])
    weight = torch.tensor([0.5, 0.5, 0.0])
    with_it = Batch(users, items, items, torch.tensor([0.5, 0.5, 1e-30]))
    torch.testing.assert_close(
        loss.ranking(vectors, with_it), loss.ranking(vectors, Batch(users, items, items, weight))
    )


def test_known_candidates_can_be_masked():
    """A user who owns every candidate is left with the positive, and costs nothing."""
    graph = graph_of([(0, 0), (0, 1), (1, 1), (1, 2)], 2, 4)
    batch = Batch(torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([2, 0]), torch.tensor([0.5, 0.5]))
    vectors = vectors_of(graph)
    kept, masked = (softmax_of(graph, known=known).ranking(vectors, batch).item() for known in ("keep", "mask"))
    only_second = softmax_of(graph).ranking(vectors, batch._replace(weight=torch.tensor([1e-30, 1.0]))).item()
    assert masked == pytest.approx(only_second / 2, rel=1e-5)
    assert kept > masked


def test_masking_known_candidates_has_a_limit_of_memory(monkeypatch):
    graph = random_graph()
    monkeypatch.setattr(module, "KNOWN_BYTES", OwnedItems.bytes_of(graph) - 1)
    with pytest.raises(ConfigError, match=r"known is 'mask'.*use method\.known=keep"):
        softmax_of(graph, known="mask")
    softmax_of(graph, known="keep")


def test_uniform_candidates_are_the_sampled_negatives():
    graph = BipartiteGraph.from_interactions(skewed())
    loss, vectors, batch = softmax_of(graph, gamma=0.0, candidates="uniform"), vectors_of(graph), batch_of(graph)
    users, items = (unit_rows(part).double() for part in vectors)
    expected = 0.0
    for user, positive, weight in zip(*(batch[part].tolist() for part in (0, 1, 3)), strict=True):
        others = [int(item) for item in batch.negatives if item != positive]
        logits = users[user] @ items[[positive, *others]].T / 0.15
        expected += weight * float(torch.logsumexp(logits, 0) - logits[0])
    assert loss.ranking(vectors, batch).item() == pytest.approx(expected, rel=1e-5)


# ---------------------------------------------------------------- methods


def test_lightgcn_with_the_options_of_softmax_is_softmax():
    config = LightGCNConfig(**SMALL, loss="softmax", l2=1e-5, gamma=0.3)
    assert_same_training(LightGCN(config), Softmax(SoftmaxConfig(**SMALL, gamma=0.3)), skewed())


def test_caged_that_changes_no_weights_is_softmax():
    log, valid = carve_validation(skewed(), seed=1)
    options = {"gamma": 0.2, "temperature": 0.3}
    caged = CAGED(CAGEDConfig(**SMALL, loss="softmax", l2=1e-5, eps=0.0, **options))
    (mine, losses), (theirs, others) = (
        trained(method, log, valid=valid) for method in (caged, Softmax(SoftmaxConfig(**SMALL, **options)))
    )
    assert caged.updates > 0
    assert losses == others
    everyone = torch.arange(log.user_count)
    assert torch.equal(mine.scorer()(everyone), theirs.scorer()(everyone))


@pytest.mark.parametrize("name", TAKE_IT)
def test_every_method_that_takes_the_softmax_learns_with_it_and_ranks_by_cosines(name):
    log = skewed()
    known = METHODS[name]
    extra = {"pretrain_epochs": 3, "finetune_epochs": 3} if name == "galore" else {}
    method, losses = trained(known.method(known.config(**SMALL, loss="softmax", **extra)), log)
    assert losses[2] < losses[0]
    assert method.ranks_by_cosine()
    for table in method.scorer().vectors:
        torch.testing.assert_close(table.norm(dim=1), torch.ones(len(table)))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_items_keep_a_power_of_their_length_in_ranking(power):
    graph = BipartiteGraph.from_interactions(skewed())
    vectors = vectors_of(graph)
    found = softmax_of(graph, item_lengths=power).ranked(vectors)
    users, items = (part.double() for part in vectors)
    cosines = (users / users.norm(dim=1, keepdim=True)) @ (items / items.norm(dim=1, keepdim=True)).T
    scores = found.users @ found.items.T
    torch.testing.assert_close(scores.double(), cosines * items.norm(dim=1) ** power, rtol=1e-5, atol=1e-6)


def test_lengths_in_ranking_change_no_training():
    kept = Softmax(SoftmaxConfig(**SMALL, item_lengths=1.0))
    (mine, losses), (theirs, others) = (trained(m, skewed()) for m in (kept, Softmax(SoftmaxConfig(**SMALL))))
    assert losses == others
    everyone = torch.arange(skewed().user_count)
    assert not torch.equal(mine.scorer()(everyone), theirs.scorer()(everyone))


def test_mixing_scales_the_scores_of_a_triple():
    """GALORE's mixed negatives: (1 - v) times the scores of a row, as if its temperature were higher."""
    graph = BipartiteGraph.from_interactions(skewed())
    vectors, batch = vectors_of(graph), some_batch(graph)
    halved = softmax_of(graph).ranking(vectors, batch, torch.full((16,), 0.5))
    torch.testing.assert_close(halved, softmax_of(graph, temperature=0.3).ranking(vectors, batch))


@pytest.mark.parametrize(
    "options", [{}, {"candidate_rows": 48}, {"gamma": 0.6, "temperature": 0.05}, {"candidate_rows": 1000}]
)
def test_distinct_rows_give_the_loss_and_gradients_of_all_rows(monkeypatch, options):
    graph = BipartiteGraph.from_interactions(skewed())
    batch, loss = padded(batch_of(graph, 120), by=7), softmax_of(graph, **options)
    assert loss._takes_distinct_rows(batch)

    def found():
        vectors = Tables(*(part.requires_grad_() for part in vectors_of(graph)))
        losses = loss(vectors, vectors_of(graph, seed=4), batch, 0.1)
        losses.total.backward()
        return [losses.total.detach(), vectors.users.grad, vectors.items.grad]

    distinct = found()
    monkeypatch.setattr(SoftmaxLoss, "_takes_distinct_rows", lambda self, names: False)
    torch.testing.assert_close(distinct, found(), rtol=1e-5, atol=1e-7)


def test_distinct_rows_by_their_numbers_in_shorter_tables_give_the_same():
    """As `batch_rows` has them: the bias belongs to the item, not to the number of its row."""
    graph = BipartiteGraph.from_interactions(skewed())
    batch, vectors, loss = batch_of(graph, 50), vectors_of(graph), softmax_of(graph)
    users, of_user = batch.users.unique(return_inverse=True)
    items, of_item = torch.cat((batch.positives, batch.negatives)).unique(return_inverse=True)
    backwards = items.flip(0)
    positives, negatives = (len(items) - 1 - of_item).chunk(2)
    shorter = Tables(vectors.users[users.long()], vectors.items[backwards.long()])
    renumbered = batch._replace(users=of_user, positives=positives, negatives=negatives)
    found, expected = (
        loss(shorter, shorter, renumbered, 0.1, names=batch),
        loss(vectors, vectors, batch, 0.1),
    )
    torch.testing.assert_close(found.total, expected.total)


def test_distinct_rows_are_for_usual_candidates_that_are_drawn_and_not_all_alike(monkeypatch):
    graph = BipartiteGraph.from_interactions(skewed())
    batch = batch_of(graph, 50)
    assert softmax_of(graph)._takes_distinct_rows(batch)
    for others in ({"known": "mask"}, {"candidates": "uniform", "gamma": 0.0}):
        assert not softmax_of(graph, **others)._takes_distinct_rows(batch)
    assert not softmax_of(graph)._takes_distinct_rows(batch._replace(weight=torch.zeros(50)))
    never = softmax_of(graph)
    never._drawn[batch.positives[0]] = False
    assert not never._takes_distinct_rows(batch)
    most = int(batch.positives.unique(return_counts=True)[1].max())
    monkeypatch.setattr(module, "MOST_COPIES", most - 1)
    assert not softmax_of(graph)._takes_distinct_rows(batch)
    assert softmax_of(graph, candidate_rows=25)._takes_distinct_rows(batch) == (most / 2 <= most - 1)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "options", [{}, {"candidate_rows": 48}, {"known": "mask"}, {"candidates": "uniform", "gamma": 0.0}]
)
def test_a_recorded_step_equals_plain_calls(options):
    log = skewed()

    def states(capture):
        graph = BipartiteGraph.from_interactions(log, "cuda")
        config = TrainConfig(epochs=3, batch_size=100, learning_rate=0.01, capture=capture, precision="float32")
        method = Softmax(SoftmaxConfig(**SMALL, **options))
        Loop(method, graph, config, Generators(1, "cuda"), None).run()
        return method.state().tensors

    for name, value in states(True).items():
        torch.testing.assert_close(value, states(False)[name], rtol=1e-4, atol=1e-5)
