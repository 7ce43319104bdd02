"""One pass on CUDA against the plain softmax and its L2 term."""

from __future__ import annotations

import pytest
import torch

from caged.graph import Batch, Tables
from caged.models import sampled_softmax as plain
from caged.models.fused_softmax import MOST_CANDIDATES, Candidates, fits, fused_softmax
from caged.models.losses import l2_rows
from caged.models.sampled_softmax import Problem, sampled_softmax, unit_rows

USERS, ITEMS, WIDTH, ROWS, PADDING = 70, 50, 20, 150, 9
TEMPERATURE, GAMMA = 0.3, 0.2


def batch_of(rows=ROWS):
    draw = torch.Generator().manual_seed(2)
    weight = torch.full((rows,), 1 / (rows - PADDING))
    weight[rows - PADDING :] = 0
    users = torch.randint(USERS, (rows,), generator=draw)
    return Batch(users, *(torch.randint(ITEMS, (rows,), generator=draw) for _ in range(2)), weight)


def tables(device="cpu"):
    """Propagated users and items, then those of layer 0; one user has a zero row."""
    draw = torch.Generator().manual_seed(1)
    made = [torch.randn(count, WIDTH, generator=draw) for count in (USERS, ITEMS, USERS, ITEMS)]
    made[0][3] = 0
    return [table.to(device).requires_grad_() for table in made]


def shares():
    """log q, and whether an item is ever drawn."""
    drawn = torch.ones(ITEMS, dtype=torch.bool)
    drawn[5] = False
    return torch.randn(ITEMS, generator=torch.Generator().manual_seed(3)), drawn


def by_parts(rows, batch, chunk):
    log_shares, drawn = shares()
    users = unit_rows(rows[0][batch.users]) / TEMPERATURE
    positives = unit_rows(rows[1][batch.positives])
    own_bias = log_shares[batch.positives] * (GAMMA - 1)
    bias = own_bias.masked_fill(~((batch.weight > 0) & drawn[batch.positives]), -torch.inf)
    keys = batch.positives
    ranking = sampled_softmax(users, positives, positives, Problem(batch.weight, keys, own_bias, keys, bias, chunk))
    return ranking, l2_rows(batch.weight, rows[2][batch.users], rows[3][keys], rows[3][batch.negatives])


@pytest.mark.gpu
@pytest.mark.parametrize(("operands", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize(("chunk", "block"), [(2048, 2**26), (64, 2**26), (64, 64 * 4 * 10)])
def test_value_and_gradients_are_those_of_the_parts(monkeypatch, operands, tolerance, chunk, block):
    monkeypatch.setitem(plain.BLOCK_BYTES, "cuda", block)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    batch, expected, found = batch_of(), tables(), tables("cuda")
    wanted = by_parts(expected, batch, chunk)
    (1.7 * wanted[0] + 0.3 * wanted[1]).backward()
    given = Candidates(*(part.cuda() for part in shares()), TEMPERATURE, GAMMA, chunk, operands)
    got = fused_softmax(Tables(*found[:2]), Tables(*found[2:]), Batch(*(part.cuda() for part in batch)), given)
    (1.7 * got[0] + 0.3 * got[1]).backward()
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.item() == pytest.approx(theirs.item(), rel=tolerance)
    for mine, theirs in zip(found, expected, strict=True):
        scale = theirs.grad.abs().max().item()
        torch.testing.assert_close(mine.grad.cpu(), theirs.grad, rtol=0, atol=tolerance * scale)


def test_only_on_cuda_and_up_to_a_number_of_candidates():
    class OnCuda:
        is_cuda = True

    few, many = batch_of(), batch_of(MOST_CANDIDATES + 1)
    assert not fits(few, 2048)
    assert fits(few._replace(weight=OnCuda()), 10**6)
    assert fits(many._replace(weight=OnCuda()), 2048)
    assert not fits(many._replace(weight=OnCuda()), 10**6)
