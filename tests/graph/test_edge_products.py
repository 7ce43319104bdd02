"""Messages with weights from the embeddings: every form against literal autograd in float64."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from caged.graph import Engine, edge_products
from caged.graph.edge_products import (
    CpuProducts,
    DenseProducts,
    EdgeValues,
    MessageMasks,
    SparseProducts,
    adaptive_messages,
    make_edge_products,
)
from tests.graph.graphs import CORNERS, graph_of, random_graph

FORMS = {"cpu": CpuProducts, "dense": lambda graph: DenseProducts(graph, torch.float64)}
WIDTH = 5


def cubic(c):
    """A weight that is not linear in c, and its slope."""
    return 1 - c + c**3, 3 * c**2 - 1


def nodes_of(graph, width=WIDTH, seed=1, dtype=torch.float64):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(graph.user_count + graph.item_count, width, generator=draw, dtype=dtype) / width**0.5


def values_of(graph, seed=2, dtype=torch.float64):
    """Nothing about one direction follows from the other."""
    draw = torch.Generator().manual_seed(seed)
    return EdgeValues(*(torch.rand(2, graph.edge_count, generator=draw, dtype=dtype) + 0.1))


def masks_of(graph, width=WIDTH):
    draw = torch.Generator().manual_seed(3)
    return torch.rand(2, graph.edge_count, width, generator=draw) < 0.6


def literal(graph, scored, factors, weight, sent=None, masks=None):
    """Message by message, with the target of each detached."""
    sent = scored if sent is None else sent
    users, items = graph.users.long(), graph.items.long() + graph.user_count
    out = torch.zeros_like(scored)
    for way, (targets, sources) in enumerate([(users, items), (items, users)]):
        c = (scored[targets].detach() * scored[sources]).sum(1)
        size = torch.ones_like(c) if weight is None else weight(c)[0]
        messages = (size * factors[way]).unsqueeze(1) * sent[sources]
        out = out.index_add(0, targets, messages if masks is None else messages * masks[way])
    return out


def gradients(function, *tables):
    """The result and what comes back to each table for a fixed gradient of the result."""
    leaves = [None if table is None else table.detach().clone().requires_grad_() for table in tables]
    out = function(*leaves)
    draw = torch.Generator().manual_seed(4)
    out.backward(torch.randn(out.shape, generator=draw, dtype=torch.float64).to(out))
    return [out.detach(), *(leaf.grad for leaf in leaves if leaf is not None)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_the_two_operations(make, form):
    graph = make()
    products = FORMS[form](graph)
    left, right, values = nodes_of(graph), nodes_of(graph, seed=5), values_of(graph)
    users, items = graph.users.long(), graph.items.long() + graph.user_count
    dots = products.dots(products.enter(left), products.enter(right))
    torch.testing.assert_close(dots, (left[users] * right[items]).sum(1))
    expected = torch.zeros_like(left)
    expected.index_add_(0, users, values.to_user.unsqueeze(1) * left[items])
    expected.index_add_(0, items, values.to_item.unsqueeze(1) * left[users])
    for _ in range(2):  # buffers are used again
        torch.testing.assert_close(products.sums(values, products.enter(left)), expected)


@pytest.mark.parametrize("apart", [False, True], ids=["one table", "sent apart"])
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("weight", [cubic, None], ids=["adaptive", "constant"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_forward_and_backward_equal_literal_autograd(make, form, weight, masked, apart):
    graph = make()
    products, factors = FORMS[form](graph), values_of(graph)
    keep = masks_of(graph) if masked else None
    tables = (nodes_of(graph), nodes_of(graph, seed=6) if apart else None)

    def ours(scored, sent):
        masks = MessageMasks(graph, *keep) if masked else None
        return adaptive_messages(products, scored, factors, weight, sent=sent, masks=masks)

    found = gradients(ours, *tables)
    expected = gradients(lambda scored, sent: literal(graph, scored, factors, weight, sent, keep), *tables)
    if apart and weight is None:  # nothing depends on the scored rows
        assert found.pop(1) is expected.pop(1) is None
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_one_factor_for_both_directions(form):
    graph = random_graph()
    shared = values_of(graph).to_user
    products = FORMS[form](graph)
    one = adaptive_messages(products, nodes_of(graph), EdgeValues(shared, shared), cubic)
    two = adaptive_messages(products, nodes_of(graph), EdgeValues(shared, shared.clone()), cubic)
    torch.testing.assert_close(one, two)


@pytest.mark.parametrize("source", ["users", "items"])
@pytest.mark.parametrize("form", FORMS)
def test_gradcheck_through_the_source(form, source):
    """With messages in one direction and only the sources varied, nothing is held back, and differences must agree."""
    graph = random_graph()
    products, users = FORMS[form](graph), graph.user_count
    values = values_of(graph)
    nothing = torch.zeros_like(values.to_user)
    factors = EdgeValues(nothing, values.to_item) if source == "users" else EdgeValues(values.to_user, nothing)
    fixed = nodes_of(graph)

    def messages(rows, sent):
        parts = (rows, fixed[users:]) if source == "users" else (fixed[:users], rows)
        return adaptive_messages(products, torch.cat(parts), factors, cubic, sent=sent)

    varied = (fixed[:users] if source == "users" else fixed[users:]).clone().requires_grad_()
    assert torch.autograd.gradcheck(messages, (varied, nodes_of(graph, seed=6).requires_grad_()))
    assert torch.autograd.gradcheck(lambda rows: messages(rows, None), (varied,))


def test_the_weight_is_not_differentiated_through_the_target():
    """One edge and a message to the user only: the user's row decides the weight and gets no gradient."""
    graph = graph_of([(0, 0)], 1, 1)
    nodes = torch.tensor([[2.0, 0.0], [3.0, 1.0]], dtype=torch.float64, requires_grad=True)
    one, none = torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)

    def product(c):
        return c, torch.ones_like(c)

    out = adaptive_messages(CpuProducts(graph), nodes, EdgeValues(one, none), product)
    assert out.tolist() == [[18, 6], [0, 0]]  # c = 6
    out[0, 0].backward()
    assert nodes.grad.tolist() == [[0, 0], [6 + 2 * 3, 0]]  # c, and dc/dh_i d_i = h_u 3


def test_same_input_same_bits():
    graph = random_graph(edges=200, user_count=50, item_count=40)
    nodes, factors = nodes_of(graph, 64, dtype=torch.float32), values_of(graph, dtype=torch.float32)
    products = make_edge_products(graph)
    first, second = (
        gradients(lambda scored: adaptive_messages(products, scored, factors, cubic), nodes) for _ in range(2)
    )
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)


class Largest(TorchDispatchMode):
    """The largest tensor that any operation returns."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for part in out if isinstance(out, tuple | list) else (out,):
            if isinstance(part, torch.Tensor) and part.layout == torch.strided:
                self.numel = max(self.numel, part.numel())
        return out


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
def test_no_tensor_of_edges_times_columns(monkeypatch, masked):
    monkeypatch.setitem(edge_products.MASKED_CELLS, "cpu", 1000)
    graph = graph_of([(u, i) for u in range(40) for i in range(30)], 40, 30)
    width = 16
    nodes, factors = nodes_of(graph, width, dtype=torch.float32), values_of(graph, dtype=torch.float32)
    masks = MessageMasks(graph, *masks_of(graph, width)) if masked else None
    products = make_edge_products(graph)
    with Largest() as largest:
        gradients(lambda scored: adaptive_messages(products, scored, factors, cubic, masks=masks), nodes)
    assert len(nodes) * width <= largest.numel < graph.edge_count * width / 10


def test_runs_of_masked_edges_do_not_show(monkeypatch):
    graph = random_graph()
    keep, factors = masks_of(graph), values_of(graph)
    results = []
    for cells in (1, 3 * WIDTH, 10**6):
        monkeypatch.setitem(edge_products.MASKED_CELLS, "cpu", cells)
        masks = MessageMasks(graph, *keep)
        results.append(adaptive_messages(CpuProducts(graph), nodes_of(graph), factors, cubic, masks=masks))
    for other in results[1:]:
        torch.testing.assert_close(results[0], other)


def test_the_form_follows_the_device():
    assert isinstance(make_edge_products(random_graph()), CpuProducts)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("backend", "precision", "form", "tolerance"),
    [
        ("sparse", "float32", SparseProducts, 1e-5),
        ("sparse", "bf16", SparseProducts, 3e-2),
        ("dense", "float32", DenseProducts, 1e-5),
        ("dense", "tf32", DenseProducts, 3e-3),
        ("dense", "bf16", DenseProducts, 3e-2),
    ],
)
@pytest.mark.parametrize("way", ["one table", "sent apart", "masked"])
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_cuda_forms_equal_literal_autograd(make, way, backend, precision, form, tolerance):
    graph, width = make(), 48
    on_gpu = dataclasses.replace(graph.to("cuda"), engine=Engine(backend, precision))
    products = make_edge_products(on_gpu)
    assert isinstance(products, form)
    factors = values_of(graph, dtype=torch.float32)
    keep = masks_of(graph, width) if way == "masked" else None
    tables = (nodes_of(graph, width), nodes_of(graph, width, seed=6) if way == "sent apart" else None)

    def ours(scored, sent):
        masks = None if keep is None else MessageMasks(on_gpu, *keep.cuda())
        moved = EdgeValues(*(part.cuda() for part in factors))
        return adaptive_messages(products, scored, moved, cubic, sent=sent, masks=masks)

    found = gradients(ours, *(None if table is None else table.float().cuda() for table in tables))
    expected = gradients(lambda scored, sent: literal(graph, scored, factors, cubic, sent, keep), *tables)
    for mine, theirs in zip(found, expected, strict=True):
        scale = theirs.abs().max().clamp_min(1e-6)
        assert ((mine.double().cpu() - theirs).abs().max() / scale).item() < tolerance
