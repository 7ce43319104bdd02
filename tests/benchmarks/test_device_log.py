"""Made-up logs on the device: sorted, without repeats, skewed, as many as asked for, the same for the same seed."""

from __future__ import annotations

import pytest
import torch

from benchmarks import device_log
from benchmarks.device_log import Shape, generate
from caged.errors import ConfigError

CPU = torch.device("cpu")
SHAPE = Shape(1200, 800, 20_000)


def pairs(log):
    users = torch.repeat_interleave(log.user_offsets.diff())
    return users, log.items.long()


@pytest.fixture(params=["one piece", "many pieces"])
def log(request, monkeypatch):
    if request.param == "many pieces":
        monkeypatch.setattr(device_log, "PIECE", 1000)
    return generate(SHAPE, 100, CPU)


def test_rows_ascend_without_repeats(log):
    users, items = pairs(log)
    keys = users * SHAPE.items + items
    assert bool((keys[1:] > keys[:-1]).all())
    assert int(items.min()) >= 0
    assert int(items.max()) < SHAPE.items
    assert len(log.user_offsets) == SHAPE.users + 1


def test_there_are_as_many_as_asked_for(log):
    assert len(log.items) + len(log.held_out) == SHAPE.interactions
    assert log.facts["interactions"] == SHAPE.interactions


def test_popularity_is_skewed_on_both_sides(log):
    users, items = pairs(log)
    for rows, count in ((users, SHAPE.users), (items, SHAPE.items)):
        degrees = torch.bincount(rows, minlength=count).sort(descending=True).values
        assert int(degrees[: count // 10].sum()) > 0.25 * len(items)  # a tenth of them would have a tenth


def test_users_pick_half_of_their_items_in_their_own_community(log):
    """Users of one community share more items than users of two."""
    dense = torch.zeros(SHAPE.users, SHAPE.items)
    dense[pairs(log)] = 1
    communities = 2  # isqrt(800 // 200)
    own, other = (dense[start::communities].mean(0) for start in range(communities))
    assert float((own - other).abs().sum()) > 0.5 * float((own + other).sum() / 2)


def test_what_is_held_out_is_in_nobodys_training_row(log):
    training = log.sample_training()
    users, items = pairs(log)
    assert training.users.tolist() == [
        row for row, user in enumerate(log.sample.tolist()) for _ in range(int((users == user).sum()))
    ]
    held = set(zip(log.sample[log.held_out.users].tolist(), log.held_out.items.tolist(), strict=True))
    assert held.isdisjoint(set(zip(users.tolist(), items.tolist(), strict=True)))
    assert 50 < len(log.sample) <= 100
    assert 0.1 < len(held) / (len(held) + len(training)) < 0.3


def test_the_seed_decides():
    first, again, other = (generate(SHAPE, 100, CPU, seed) for seed in (1, 1, 2))
    assert first.facts == again.facts
    assert torch.equal(first.items, again.items)
    assert first.facts["checksum"] != other.facts["checksum"]


@pytest.mark.parametrize(("shape", "sample"), [(Shape(10, 10, 30), 1), (Shape(0, 10, 1), 1), (SHAPE, 1201), (SHAPE, 0)])
def test_impossible_sizes_are_refused(shape, sample):
    with pytest.raises(ConfigError, match=r"cannot be made up|the sample has"):
        generate(shape, sample, CPU)
