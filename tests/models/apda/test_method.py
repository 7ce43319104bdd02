"""The testable properties of APDA, its layers against the literal formulas, its ablations."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from caged.config import build
from caged.errors import ConfigError
from caged.graph import BipartiteGraph, degree_weights
from caged.graph.edge_products import CpuProducts, EdgeValues
from caged.models.apda.method import APDA, APDAConfig, adaptive_weight
from caged.models.apda.rows import Sources, source_rows, unit_rows
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.runs.spec import resolve
from caged.seeding import Generators
from tests.graph.graphs import graph_of, random_graph
from tests.models.logs import skewed
from tests.models.short_runs import assert_same_training, padded, prepared, some_batch, trained

QUIET = {"noise": 0.0, "dropout_rate": 0.0}
NEUTRAL = {"without": "adaptive_weight", "rho": 0.0, **QUIET}


def apda(graph=None, seed=1, **options):
    return prepared(APDA(APDAConfig(**{"embedding_size": 4, **options})), graph or random_graph(), seed)


# ---------------------------------------------------------------- the weight


def test_weights_of_identical_orthogonal_and_opposite_vectors():
    weight, _ = adaptive_weight(torch.tensor([1.0, 0.0, -1.0]), 1.1, exp_on=False)
    torch.testing.assert_close(weight, torch.tensor([0.0, 2 / 1.1, 4 / 1.1]))


def test_exponential_weight_by_hand():
    """kappa = 1, c = 1: s = 0, exp(0) softplus(0) / 2 = ln 2 / 2; c = 0: s = 2."""
    weight, _ = adaptive_weight(torch.tensor([1.0, 0.0]), 1.0, exp_on=True)
    expected = [math.log(2) / 2, 0.5 * math.exp(2) * math.log(1 + math.exp(2))]
    torch.testing.assert_close(weight, torch.tensor(expected))


@pytest.mark.parametrize("exp_on", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1 / 256])
def test_the_weight_decreases_with_the_product_at_the_stated_slope(exp_on, scale):
    c = torch.linspace(-1, 1, 41, dtype=torch.float64, requires_grad=True)
    weight, slope = adaptive_weight(c, 1.1, exp_on=exp_on, scale=scale)
    assert (weight.diff() < 0).all()
    (expected,) = torch.autograd.grad(weight.sum(), c)
    torch.testing.assert_close(slope.expand_as(c), expected)


@pytest.mark.parametrize("width", [8, 256])
def test_the_mean_over_dimensions_hardly_varies(width):
    graph = random_graph(edges=60)
    draw = torch.Generator().manual_seed(0)
    rows = unit_rows(torch.randn(graph.user_count + graph.item_count, width, generator=draw, dtype=torch.float64))
    c = CpuProducts(graph).dots(rows, rows)
    mean, _ = adaptive_weight(c, 1.1, exp_on=False, scale=1 / width)
    total, _ = adaptive_weight(c, 1.1, exp_on=False)
    bound = 2 / (width - 1)
    assert 0 < (mean.max() - mean.min()) / mean.min() <= bound
    assert (total.max() - total.min()) / total.min() > bound


def test_the_weight_matrix_is_symmetric_when_recommending():
    """The weight of u <- i in a graph is that of i <- u in the same graph with its sides exchanged."""
    pairs = [(0, 0), (0, 2), (1, 1), (2, 0), (3, 2), (3, 1)]
    graph, exchanged = graph_of(pairs, 4, 3), graph_of([(i, u) for u, i in pairs], 3, 4)
    rows = unit_rows(torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    one = CpuProducts(graph).dots(rows, rows)
    other = CpuProducts(exchanged).dots(*[torch.cat((rows[4:], rows[:4]))] * 2)
    torch.testing.assert_close(one[graph.by_item.long()], other)


# ---------------------------------------------------------------- the layers, literally


def literal(method, seed):
    """(1) to (7) message by message, with the draws that the method takes."""
    config, graph = method.config, method.encoder.graph
    draws = Generators(seed)
    users, count = graph.user_count, graph.user_count + graph.item_count
    u, i = graph.users.long(), graph.items.long() + users
    target, source = torch.cat((u, i)), torch.cat((i, u))
    start = torch.cat(method.encoder.layer0)
    degree = torch.bincount(target, minlength=count).to(start)
    scaling = (degree[target] * degree[source]).rsqrt()
    scaling = torch.ones_like(scaling) if config.without == "weight_scaling" else scaling
    rho = 0.0 if config.without == "residual" else config.rho
    x0, hidden, layers, rate = F.normalize(start), start, [start], config.dropout_rate
    for _ in range(config.layers):
        rows = hidden + rho * x0
        rows = rows if config.without == "adaptive_weight" else F.normalize(rows)
        push = F.normalize(torch.rand(rows.shape, generator=draws["noise"], dtype=rows.dtype)) if config.noise else 0
        noisy = rows + rows.sign() * config.noise * push
        c = (noisy[target].detach() * noisy[source]).sum(1) / (rows.shape[1] if config.inner == "mean" else 1)
        s = (2 - 2 * c) / config.kappa
        a = 0.5 * s.exp() * F.softplus(s) if config.exp_on else s
        a = torch.ones_like(a) if config.without == "adaptive_weight" else a
        shape = {"node": rows.shape, "edge": (len(target), 1), "message": (len(target), rows.shape[1])}[config.dropout]
        if rate:
            kept = torch.empty(shape, dtype=torch.bool).bernoulli_(1 - rate, generator=draws["dropout"])
            kept = kept.double() / (1 - rate)
            kept = kept[source] if config.dropout == "node" else kept
        else:
            kept = 1.0
        messages = (a * scaling).unsqueeze(1) * noisy[source] * kept
        hidden = torch.zeros_like(rows).index_add(0, target, messages) + rho * (rows - x0)
        layers.append(hidden)
    return torch.stack(layers).mean(0)


def in_double(method):
    for table in method.encoder.parameters:
        table.data = table.data.double()
    scaling = degree_weights(method.encoder.graph, dtype=torch.float64).to_user
    scaling = torch.ones_like(scaling) if method.config.without == "weight_scaling" else scaling
    raised = scaling / (1 - method.config.dropout_rate)
    method.factors, method._raised = EdgeValues(scaling, scaling), EdgeValues(raised, raised)
    return method


LITERAL = {
    "defaults": {},
    "edge": {"dropout": "edge"},
    "message": {"dropout": "message"},
    "mean": {"inner": "mean"},
    "exp": {"exp_on": True, "kappa": 0.9},
    "code": {"inner": "mean", "exp_on": True, "dropout": "message"},
    "no draws": QUIET,
    "no residual": {"rho": 0.0},
    "WS": {"without": "weight_scaling"},
    "RC": {"without": "residual"},
    "AW": {"without": "adaptive_weight"},
    "AW, edge": {"without": "adaptive_weight", "dropout": "edge"},
    "AW, message, no residual": {"without": "adaptive_weight", "dropout": "message", "rho": 0.0},
}


@pytest.mark.parametrize("options", LITERAL.values(), ids=LITERAL.keys())
def test_layers_and_gradients_equal_the_literal_formulas(options):
    method = in_double(apda(seed=3, layers=3, **options))
    results = []
    for of in (lambda: torch.cat(method.propagated(training=True)), lambda: literal(method, seed=3)):
        for table in method.encoder.parameters:
            table.grad = None
        out = of()
        draw = torch.Generator().manual_seed(7)
        out.backward(torch.randn(out.shape, generator=draw, dtype=out.dtype))
        results.append([out.detach(), *(table.grad for table in method.encoder.parameters)])
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


def test_recommending_is_the_literal_formula_without_draws():
    options = {"exp_on": True, "rho": 0.2, "layers": 4}
    method, quiet = in_double(apda(**options)), in_double(apda(**options, **QUIET))
    torch.testing.assert_close(torch.cat(method.scorer().vectors), literal(quiet, 1).detach())


# ---------------------------------------------------------------- identity, modes, equivariance


def test_neutral_setting_is_lightgcn():
    log = skewed()
    assert_same_training(APDA(APDAConfig(embedding_size=8, **NEUTRAL)), LightGCN(LightGCNConfig(embedding_size=8)), log)


def test_neutral_setting_layer_by_layer_is_lightgcn_to_rounding():
    """What the shortcut of the neutral setting leaves out computes the same."""
    method = apda(**NEUTRAL)
    for mine, theirs in zip(method.layer_by_layer(training=True), method.encoder(), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("change", [{"rho": 0.2}, {"noise": 0.1}, {"dropout_rate": 0.1}, {"without": "none"}])
def test_nothing_less_is_lightgcn(change):
    graph = random_graph()
    batch = some_batch(graph)
    plain = prepared(LightGCN(LightGCNConfig(embedding_size=4)), graph).loss(batch).total.item()
    assert apda(graph, **NEUTRAL).loss(batch).total.item() == plain
    assert apda(graph, **{**NEUTRAL, **change}).loss(batch).total.item() != plain


@pytest.mark.parametrize("dropout", ["edge", "message"])
def test_same_seed_same_training(dropout):
    """Bit for bit; the contract tests do it for the default."""
    one, other = (APDA(APDAConfig(embedding_size=4, dropout=dropout, layers=2)) for _ in range(2))
    assert_same_training(one, other, skewed(), epochs=2)


@pytest.mark.parametrize("dropout", ["node", "edge", "message"])
def test_recommending_repeats_itself_and_training_does_not(dropout):
    method = apda(dropout=dropout)
    for training in (False, True):
        first, second = (torch.cat(method.propagated(training=training)) for _ in range(2))
        assert torch.equal(first, second) != training


def test_recommending_does_not_draw():
    generators = Generators(1)
    method = APDA(APDAConfig(embedding_size=4))
    method.prepare(random_graph(), generators)
    before = generators.state()
    method.scorer()
    for name, state in generators.state().items():
        assert torch.equal(state, before[name])


@pytest.mark.parametrize(("off", "other"), [({"noise": 0.0}, "dropout"), ({"dropout_rate": 0.0}, "noise")])
def test_noise_and_dropout_have_streams_of_their_own(off, other):
    states = []
    for options in ({}, off):
        generators = Generators(1)
        method = APDA(APDAConfig(embedding_size=4, **options))
        method.prepare(random_graph(), generators)
        method.loss(some_batch(method.encoder.graph))
        states.append(generators.state())
    assert torch.equal(states[0][other], states[1][other])
    name = "noise" if other == "dropout" else "dropout"
    assert not torch.equal(states[0][name], states[1][name])


def test_relabelling_permutes_the_vectors():
    graph = random_graph()
    method = apda(graph)
    draw = torch.Generator().manual_seed(0)
    users, items = (torch.randperm(count, generator=draw) for count in (graph.user_count, graph.item_count))
    pairs = zip(users[graph.users.long()].tolist(), items[graph.items.long()].tolist(), strict=True)
    other = apda(graph_of(pairs, graph.user_count, graph.item_count))
    with torch.no_grad():
        other.encoder.users[users] = method.encoder.users
        other.encoder.items[items] = method.encoder.items
    found, expected = other.scorer().vectors, method.scorer().vectors
    torch.testing.assert_close(found.users[users], expected.users)
    torch.testing.assert_close(found.items[items], expected.items)


# ---------------------------------------------------------------- noise, dropout, corners


def test_noise_moves_every_entry_away_from_zero_by_a_fixed_length():
    draw = torch.Generator().manual_seed(0)
    hidden, uniform = torch.randn(20, 6, generator=draw), torch.rand(20, 6, generator=draw)
    start = unit_rows(hidden)
    clean = source_rows(hidden, start, rho=0.3).scored
    noisy = source_rows(hidden, start, rho=0.3, noise=0.1, uniform=uniform).scored
    torch.testing.assert_close(clean.norm(dim=1), torch.ones(20))
    torch.testing.assert_close((noisy - clean).norm(dim=1), torch.full((20,), 0.1))
    assert ((noisy - clean) * clean.sign() > 0).all()


@pytest.mark.parametrize("dropout", ["node", "edge", "message"])
def test_dropout_keeps_the_expected_message(dropout):
    graph = random_graph()
    method = apda(graph, dropout=dropout, noise=0.0, layers=1)
    with torch.no_grad():
        drawn = torch.stack([torch.cat(method.propagated(training=True)) for _ in range(600)])
        expected = torch.cat(method.propagated(training=False))
    error = drawn.std(0) / math.sqrt(len(drawn))
    assert ((drawn.mean(0) - expected).abs() <= 5 * error + 1e-6).all()
    assert (error > 1e-4).any()


def test_edges_are_dropped_whole_and_per_direction():
    """Two edges of one user: a message is there with its full, raised weight or not at all."""
    method = apda(graph_of([(0, 0), (0, 1)], 1, 2), dropout="edge", noise=0.0, rho=0.0, layers=1, embedding_size=3)
    seen = set()
    with torch.no_grad():
        whole = torch.cat(method.propagated(training=False)) - torch.cat(method.encoder.layer0) / 2
        for _ in range(60):
            got = torch.cat(method.propagated(training=True)) - torch.cat(method.encoder.layer0) / 2
            there = [bool(got[item].any()) for item in (1, 2)]
            for item, is_there in zip((1, 2), there, strict=True):
                torch.testing.assert_close(got[item], whole[item] / 0.6 if is_there else torch.zeros(3))
            seen.add((*there, bool(got[0].any())))
    assert {(True, False), (False, True), (True, True), (False, False)} == {pair[:2] for pair in seen}
    assert (False, False, True) in seen  # nothing reaches the items, but something the user


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_nodes_without_edges_and_zero_rows_are_harmless(rho):
    graph = random_graph()
    method = apda(graph, rho=rho)
    with torch.no_grad():
        method.encoder.users[0] = 0.0
    losses = method.loss(some_batch(graph))
    losses.total.backward()
    for table in method.encoder.parameters:
        assert torch.isfinite(table.grad).all()
    vectors = method.scorer().vectors
    assert torch.isfinite(torch.cat(vectors)).all()
    if rho == 0:  # the last item has no edges: E^(0) / (L + 1) is all of it
        torch.testing.assert_close(vectors.items[-1], method.encoder.items[-1].detach() / 4)


def test_rows_pass_gradcheck():
    draw = torch.Generator().manual_seed(0)
    hidden, start = torch.randn(2, 6, 3, generator=draw, dtype=torch.float64)
    uniform, keep = torch.rand(6, 3, generator=draw, dtype=torch.float64), torch.rand(6, 3, generator=draw) < 0.6

    def rows(hidden, start):
        return tuple(source_rows(hidden, start, rho=0.4, noise=0.1, uniform=uniform, keep=keep))

    assert torch.autograd.gradcheck(rows, (hidden.requires_grad_(), start.requires_grad_()))


def test_no_layers_is_matrix_factorisation():
    method = apda(layers=0)
    assert torch.equal(method.scorer().vectors.users, method.encoder.users.detach())


def test_padding_does_not_touch_the_loss():
    graph = random_graph()
    batch = some_batch(graph)
    losses = [apda(graph).loss(each).total.item() for each in (batch, padded(batch))]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_training_lowers_the_loss():
    _, losses = trained(APDA(APDAConfig(embedding_size=8)), skewed(), epochs=15, learning_rate=0.05)
    assert losses[-1] < 0.9 * losses[0]


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("inner", "mean"),
        ("exp_on", True),
        ("kappa", 0.9),
        ("rho", 0.2),
        ("noise", 0.5),
        ("dropout", "edge"),
        ("dropout", "message"),
        ("dropout_rate", 0.1),
        ("layers", 2),
        ("layer_scale", 2.0),
        ("without", "weight_scaling"),
        ("without", "residual"),
        ("without", "adaptive_weight"),
    ],
)
def test_every_option_changes_the_loss(name, value):
    graph = random_graph()
    batch = some_batch(graph)
    before, after = (apda(graph, **options).loss(batch).total.item() for options in ({}, {name: value}))
    assert before != after


def test_residual_ablation_is_rho_zero():
    graph = random_graph()
    batch = some_batch(graph)
    assert apda(graph, without="residual").loss(batch).total == apda(graph, rho=0.0).loss(batch).total


def test_masks_beyond_the_memory_are_refused():
    log = skewed()
    config = APDAConfig(dropout="message", memory_gib=1e-5)
    with pytest.raises(ConfigError, match=r"method\.dropout is 'message', whose masks take .* GiB .* allows 1e-05"):
        prepared(APDA(config), BipartiteGraph.from_interactions(log))
    prepared(APDA(APDAConfig(dropout="message", dropout_rate=0.0, memory_gib=1e-5)), random_graph())


def test_bad_values_are_errors():
    with pytest.raises(ConfigError, match=r"method\.dropout_rate is 1\.0; it must be >= 0 and <= 0\.95"):
        build(APDAConfig, {"dropout_rate": 1.0}, "method")
    with pytest.raises(ConfigError, match=r"method\.kappa is 0\.0"):
        build(APDAConfig, {"kappa": 0.0}, "method")


def test_the_preset_does_what_the_published_code_does():
    spec = resolve("x", "apda", presets=("apda_code",))
    config = spec.config
    assert (config.inner, config.exp_on, config.dropout, config.dropout_rate) == ("mean", True, "message", 0.4)
    assert (config.rho, config.kappa, config.noise, config.layers) == (0.6, 1.1, 0.1, 4)
    assert spec.train.sampler == "user_uniform"


# ---------------------------------------------------------------- CUDA


@pytest.mark.gpu
@pytest.mark.parametrize("options", LITERAL.values(), ids=LITERAL.keys())
def test_fused_rows_equal_plain_ones(options):
    config = APDAConfig(**options)
    draw = torch.Generator().manual_seed(0)
    hidden, start = torch.randn(2, 50, 70, generator=draw)
    hidden[3] = 0.0
    uniform, keep = torch.rand(50, 70, generator=draw), torch.rand(50, 70, generator=draw) < 0.6
    results = []
    for device in ("cpu", "cuda"):
        leaves = [part.clone().to(device).requires_grad_() for part in (hidden, start)]
        rows = source_rows(
            *leaves,
            rho=config.residual,
            unit=config.adaptive,
            noise=config.noise,
            uniform=uniform.to(device) if config.noise else None,
            keep=keep.to(device) if config.dropout == "node" else None,
        )
        given = torch.Generator().manual_seed(1)
        parts = [part for part in rows if part is not None]
        torch.autograd.backward(parts, [torch.randn(50, 70, generator=given).to(device) for _ in parts])
        gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
        results.append([part.detach().cpu() for part in (*parts, *gradients)])
        assert isinstance(rows, Sources)
    for plain, fused in zip(*results, strict=True):
        others = [row for row in range(50) if row != 3]  # a zero row has a gradient of 1e12 where rho = 0
        torch.testing.assert_close(fused[others], plain[others], rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("dropout", ["node", "edge", "message"])
def test_a_recorded_step_draws_anew_each_time(dropout):
    from caged.training import Loop, TrainConfig

    method = APDA(APDAConfig(embedding_size=8, dropout=dropout, layers=2))
    graph = BipartiteGraph.from_interactions(skewed(), "cuda")
    config = TrainConfig(epochs=3, batch_size=64, learning_rate=0.0001)
    Loop(method, graph, config, Generators(1, "cuda"), None).run()
    first, second = (torch.cat(method.propagated(training=True)).detach() for _ in range(2))
    assert torch.isfinite(first).all()
    assert not torch.equal(first, second)
