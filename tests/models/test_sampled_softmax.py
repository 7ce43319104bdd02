"""The sampled softmax and its gradient against a literal loop; blocks, chunks, padding, extreme values."""

from __future__ import annotations

import math

import pytest
import torch

from caged.models import sampled_softmax as module
from caged.models.sampled_softmax import Problem, sampled_softmax, unit_rows


def problem(rows=12, items=5, chunk=12, padding=0, seed=0, **others):
    """Random weights, keys and biases; the last `padding` rows weigh nothing."""
    draw = torch.Generator().manual_seed(seed)
    weight = torch.rand(rows, generator=draw, dtype=torch.float64)
    weight[rows - padding :] = 0
    keys = torch.randint(items, (rows,), generator=draw)
    own_bias = torch.randn(rows, generator=draw, dtype=torch.float64)
    bias = own_bias.masked_fill(weight == 0, -torch.inf)
    return Problem(weight / weight.sum(), keys, own_bias, keys, bias, chunk, operands=torch.float64)._replace(**others)


def tables(rows=12, width=3, seed=1, count=3):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, width, generator=draw, dtype=torch.float64).requires_grad_() for _ in range(count)]


def literal(users, positives, candidates, given):
    """Row by row, candidate by candidate."""
    total = users.new_zeros(())
    for b in range(len(users)):
        own = users[b] @ positives[b] + given.own_bias[b]
        logits = [own]
        first = b // given.chunk * given.chunk
        for c in range(first, min(first + given.chunk, len(users))):
            masked = given.known is not None and given.known(slice(b, b + 1), slice(c, c + 1)).item()
            if given.candidate_keys[c] != given.keys[b] and given.bias[c] > -math.inf and not masked:
                logits.append(users[b] @ candidates[c] + given.bias[c])
        total = total + given.weight[b] * (torch.logsumexp(torch.stack(logits), 0) - own)
    return total


def gradients(loss, given):
    """Of 1.7 times the loss, by fresh copies of the rows."""
    rows = tables(len(given.weight))
    value = loss(*rows, given)
    (1.7 * value).backward()
    return value, [part.grad for part in rows]


SHAPES = {
    "one chunk": {},
    "chunks": {"chunk": 4},
    "a last chunk that is not full": {"chunk": 5},
    "chunk larger than the batch": {"chunk": 100},
    "padding": {"padding": 3},
    "a chunk of nothing but padding": {"chunk": 4, "padding": 5},
    "one real row": {"rows": 3, "padding": 2},
    "one item": {"items": 1},
    "other candidates": {"candidate_keys": torch.arange(12) % 7},
    "no candidate of the same key": {"candidate_keys": torch.arange(12) + 5},
    "known": {"known": lambda rows, chunk: (torch.arange(12)[rows, None] * 7 + torch.arange(12)[chunk]) % 3 == 0},
}


@pytest.mark.parametrize("block", [1, 3 * 12 * 4, 2**20], ids=["a row", "three rows", "all rows"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_value_and_gradients_equal_those_of_a_literal_loop(monkeypatch, shape, block):
    monkeypatch.setitem(module.BLOCK_BYTES, "cpu", block)
    given = problem(**shape)
    value, found = gradients(sampled_softmax, given)
    wanted, expected = gradients(literal, given)
    torch.testing.assert_close(value, wanted)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs if theirs is not None else torch.zeros_like(mine))


def test_candidates_may_be_the_positives_themselves():
    given = problem()
    (users, rows), (same, both) = tables(count=2), tables(count=2)
    sampled_softmax(users, rows, rows, given).backward()
    literal(same, both, both, given).backward()
    torch.testing.assert_close(rows.grad, both.grad)
    torch.testing.assert_close(users.grad, same.grad)


def test_a_block_is_never_larger_than_stated(monkeypatch):
    seen = []
    plain = module._logits

    def watched(*arguments):
        logits = plain(*arguments)
        seen.append(logits.numel() * 4)
        return logits

    monkeypatch.setattr(module, "_logits", watched)
    monkeypatch.setitem(module.BLOCK_BYTES, "cpu", 5 * 12 * 4)
    sampled_softmax(*tables(), problem())
    assert len(seen) == 3
    assert max(seen) == 5 * 12 * 4


def test_logits_that_exp_cannot_hold():
    """Cosines over a temperature of 0.001: exp(1000) is no number, the loss is."""
    users, positives = torch.eye(3)[[0, 1]] * 1000, torch.eye(3)[[1, 0]]
    half, zero = torch.full((2,), 0.5), torch.zeros(2)
    keys = torch.tensor([1, 0])
    users.requires_grad_()
    loss = sampled_softmax(users, positives, positives, Problem(half, keys, zero, keys, zero, 2))
    loss.backward()
    assert loss.item() == 1000  # each row's own score is 0, that of the other candidate 1000
    assert torch.isfinite(users.grad).all()


def test_unit_rows_and_their_gradient():
    rows = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(unit_rows, (rows,))
    torch.testing.assert_close(unit_rows(rows).norm(dim=1), torch.ones(6, dtype=torch.float64))


def test_a_zero_row_stays_zero_and_gets_no_gradient():
    rows = torch.tensor([[0.0, 0.0], [3.0, 4.0]]).requires_grad_()
    unit = unit_rows(rows)
    assert unit.tolist() == [[0.0, 0.0], [pytest.approx(0.6), pytest.approx(0.8)]]
    unit[:, 0].sum().backward()
    assert rows.grad[0].tolist() == [0.0, 0.0]
    assert rows.grad[1].tolist() == pytest.approx([0.128, -0.096])


# ---------------------------------------------------------------- on a GPU


def on_gpu(given, dtype):
    """The same problem there, in float32 with products of `dtype`."""
    moved = [part.float().cuda() if part.is_floating_point() else part.cuda() for part in given[:5]]
    return Problem(*moved, chunk=given.chunk, operands=dtype)


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("block", [100 * 300 * 4, 64 * 2**20])
def test_cuda_equals_a_literal_loop(monkeypatch, block, dtype, tolerance):
    monkeypatch.setitem(module.BLOCK_BYTES, "cuda", block)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    given = problem(rows=600, items=90, chunk=300, padding=11)
    plain = tables(600, width=32)
    rows = [part.detach().float().cuda().requires_grad_() for part in plain]
    wanted = literal(*(unit_rows(part) / 0.2 for part in plain), given)
    found = sampled_softmax(*(unit_rows(part) / 0.2 for part in rows), on_gpu(given, dtype))
    wanted.backward()
    found.backward()
    assert found.item() == pytest.approx(wanted.item(), rel=tolerance)
    for mine, theirs in zip(rows, plain, strict=True):
        scale = theirs.grad.abs().max().item()
        torch.testing.assert_close(mine.grad.cpu().double(), theirs.grad, rtol=0, atol=tolerance * scale)
