"""The softmax over distinct users and items against the plain one, which takes every row of the batch for itself."""

from __future__ import annotations

import pytest
import torch

from caged.models import distinct_softmax as module
from caged.models import matrix_products
from caged.models.distinct_softmax import MOST_COPIES, Pairs, distinct_softmax
from caged.models.sampled_softmax import Problem, sampled_softmax

ROWS, WIDTH = 40, 3


def case(users=9, items=7, dtype=torch.float64, seed=0):
    """Distinct rows, their biases, and pairs that name each of them."""
    draw = torch.Generator().manual_seed(seed)
    tables = [torch.randn(count, WIDTH, generator=draw, dtype=dtype).requires_grad_() for count in (users, items)]
    weight = torch.rand(ROWS, generator=draw, dtype=dtype) + 0.1
    numbers = (torch.arange(ROWS).remainder(count)[torch.randperm(ROWS, generator=draw)] for count in (users, items))
    return tables, torch.randn(items, generator=draw, dtype=dtype), Pairs(*numbers, weight / weight.sum())


def plain(users, items, bias, pairs, chunk):
    """Row by row, with copies of the positive left out."""
    own = bias.index_select(0, pairs.items)
    positives = items.index_select(0, pairs.items)
    given = Problem(pairs.weight, pairs.items, own, pairs.items, own, chunk, operands=users.dtype)
    return sampled_softmax(users.index_select(0, pairs.users), positives, positives, given)


def value_and_gradients(loss, tables, *given):
    copies = [table.detach().clone().requires_grad_() for table in tables]
    value = loss(*copies, *given)
    (1.7 * value).backward()
    return [value.detach(), *(part.grad for part in copies)]


SHAPES = {
    "some twice": {},
    "all items different": {"items": ROWS},
    "all users different": {"users": ROWS},
    "nobody twice": {"users": ROWS, "items": ROWS},
    "one item": {"items": 1},
    "one user": {"users": 1},
    "one pair": {"users": 1, "items": 1},
}


@pytest.mark.parametrize("block", [1, 3 * 4 * 7, 2**20], ids=["a user", "three users", "all users"])
@pytest.mark.parametrize("chunk", [ROWS, 100, 20, 13, 1])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_value_and_gradients_are_those_of_all_rows(monkeypatch, shape, chunk, block):
    monkeypatch.setitem(module.BLOCK_BYTES, "cpu", block)
    tables, bias, pairs = case(**shape)
    found = value_and_gradients(distinct_softmax, tables, bias, pairs, chunk)
    expected = value_and_gradients(plain, tables, bias, pairs, chunk)
    torch.testing.assert_close(found, expected)


def test_logits_that_exp_cannot_hold():
    """Some 1000 apart: exp(1000) is no number, exp(-1000) is none above 0, the loss is one."""
    tables, bias, pairs = case()
    tables = [tables[0] * 1000, tables[1]]
    found = value_and_gradients(distinct_softmax, tables, bias, pairs, ROWS)
    torch.testing.assert_close(found, value_and_gradients(plain, tables, bias, pairs, ROWS))
    single = [part.float() for part in tables]
    rounded = value_and_gradients(
        distinct_softmax, single, bias.float(), pairs._replace(weight=pairs.weight.float()), ROWS
    )
    torch.testing.assert_close([part.double() for part in rounded], found, rtol=1e-4, atol=1e-4)


def test_an_item_that_outweighs_all_others_loses_few_digits():
    """As many rows as allowed are its; its copies are subtracted again from a sum that is little else."""
    draw = torch.Generator().manual_seed(1)
    users, items = torch.randn(50, WIDTH, generator=draw), torch.randn(2, WIDTH, generator=draw)
    numbers = (torch.arange(MOST_COPIES + 1) == 50).long()
    pairs = Pairs(torch.arange(len(numbers)) % 50, numbers, torch.full((len(numbers),), 1 / len(numbers)))
    bias = torch.tensor([10.0, 0.0])
    found = value_and_gradients(distinct_softmax, [users, items], bias, pairs, 1000)
    exact = pairs._replace(weight=pairs.weight.double())
    expected = value_and_gradients(plain, [users.double(), items.double()], bias.double(), exact, 1000)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=1e-3 * theirs.abs().max().item())


def test_the_same_bits_every_time():
    tables, bias, pairs = case(dtype=torch.float32)
    once, again = (value_and_gradients(distinct_softmax, tables, bias, pairs, 13) for _ in range(2))
    assert all(torch.equal(mine, same) for mine, same in zip(once, again, strict=True))


def test_a_block_is_never_larger_than_stated(monkeypatch):
    seen = []
    into_slopes = module._into_slopes

    def watched(logits, *others):
        seen.append(logits.numel() * 4)
        return into_slopes(logits, *others)

    monkeypatch.setattr(module, "_into_slopes", watched)
    monkeypatch.setitem(module.BLOCK_BYTES, "cpu", 4 * 7 * 4)
    tables, bias, pairs = case()
    distinct_softmax(*tables, bias, pairs, ROWS)
    assert seen == [4 * 7 * 4, 4 * 7 * 4, 1 * 7 * 4]


@pytest.fixture
def by_onednn(monkeypatch):
    """On every processor, with blocks of the fewest rows."""
    operator = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if operator is None:
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(matrix_products, "_onednn_linear", lambda: operator)
    monkeypatch.setitem(module.BLOCK_BYTES, "onednn", 1)


@pytest.mark.parametrize("chunk", [1000, 350], ids=["one chunk", "three chunks"])
@pytest.mark.parametrize("bias", [0.0, -200.0], ids=["no bias", "far below the rows of padding"])
def test_onednn_multiplies_the_same_in_several_blocks(by_onednn, chunk, bias):
    """300 users are three blocks of 128 rows; neither they nor 200 items fill the last rows."""
    draw = torch.Generator().manual_seed(2)
    tables = [torch.randn(count, 8, generator=draw) for count in (300, 200)]
    numbers = (torch.arange(1000).remainder(count)[torch.randperm(1000, generator=draw)] for count in (300, 200))
    pairs = Pairs(*numbers, torch.full((1000,), 1e-3))
    biases = torch.randn(200, generator=draw) + bias
    assert module._block_rows(tables[0], 200) == module.ROUNDED_TO
    found = value_and_gradients(distinct_softmax, tables, biases, pairs, chunk)
    wide = pairs._replace(weight=pairs.weight.double())
    expected = value_and_gradients(plain, [table.double() for table in tables], biases.double(), wide, chunk)
    torch.testing.assert_close([part.double() for part in found], expected, rtol=1e-4, atol=1e-7)
