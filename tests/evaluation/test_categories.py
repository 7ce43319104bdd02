"""Metrics of the categories of listed items: derived by hand, against loops over pairs, at their extremes."""

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from caged.errors import ConfigError
from caged.evaluation.groups import grouping
from caged.evaluation.intervals import intervals
from caged.evaluation.measure import measure
from caged.evaluation.metrics import MetricKey
from tests.evaluation.worlds import World, random_groups, random_world, toy_groups, toy_world

KEYS = ("intra_list_diversity@3/genre", "miscalibration@3/genre")
TOY = measure(toy_world().lists, toy_world().grouped(toy_groups()), metrics=KEYS)


def jensen_shannon(p: list[float], q: list[float]) -> float:
    def kl(x: list[float]) -> float:
        return sum(a * math.log2(2 * a / (b + c)) for a, b, c in zip(x, p, q, strict=True) if a)

    return kl(p) / 2 + kl(q) / 2


def shares(items, genres: dict[int, list[str]], names: list[str]) -> list[float] | None:
    known = [genres[item] for item in items if genres.get(item)]
    if not known:
        return None
    return [sum((name in of) / len(of) for of in known) / len(known) for name in names]


def cosine(one: list[str], other: list[str]) -> float:
    return len(set(one) & set(other)) / math.sqrt(len(one) * len(other))


# ---------------------------------------------------------------- by hand


def test_diversity():
    """i3 is action and comedy, so its cosine with either is c = 1/sqrt 2; i10 has no genre and is left out.

    u0 (3 4 6) 1 - (2c + 1)/3, u1 (2 4) 1, u2 (8 3 9) 1 - 1/3, u3 (4 2 6) 1 - 1/3, u5 (0 3) 1 - c.
    """
    c = 1 / math.sqrt(2)
    expected = [1 - (2 * c + 1) / 3, 1, 2 / 3, 2 / 3, math.nan, 1 - c]
    np.testing.assert_allclose(TOY.per_user[KEYS[0]], expected, rtol=0, atol=1e-12)
    assert TOY.metrics[KEYS[0]] == pytest.approx(np.nanmean(expected), abs=1e-12)
    assert TOY.users_per_metric[KEYS[0]] == 5


def test_miscalibration():
    """Shares of action, comedy, drama in history and list; i3 is half of each, i10 says nothing."""
    expected = [
        jensen_shannon([1, 0, 0], [1 / 6, 5 / 6, 0]),
        jensen_shannon([5 / 6, 1 / 6, 0], [1 / 2, 1 / 2, 0]),
        jensen_shannon([1 / 2, 1 / 2, 0], [1 / 6, 1 / 6, 2 / 3]),
        jensen_shannon([1, 0, 0], [1 / 3, 2 / 3, 0]),
        math.nan,
        jensen_shannon([1 / 5, 1 / 5, 3 / 5], [3 / 4, 1 / 4, 0]),
    ]
    np.testing.assert_allclose(TOY.per_user[KEYS[1]], expected, rtol=0, atol=1e-12)
    assert TOY.metrics[KEYS[1]] == pytest.approx(np.nanmean(expected), abs=1e-12)


# ---------------------------------------------------------------- pair by pair


@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("seed", range(6))
def test_both_are_what_loops_over_pairs_and_shares_give(seed, k):
    rng = np.random.default_rng(seed)
    world = random_world(rng)
    chosen = random_groups(rng, world)
    reference = world.grouped(chosen)
    family = reference.groups.item_families["shelf"]
    genres = {
        item: [name for place, name in enumerate(family.groups) if family.member(place)[item]]
        for item in range(world.item_count)
    }
    keys = f"intra_list_diversity@{k}/shelf", f"miscalibration@{k}/shelf"
    report = measure(world.lists, reference, metrics=keys)
    for row, user in enumerate(report.users.tolist()):
        top = world.items.get(user, [])[:k]
        pairs = list(combinations([genres[item] for item in top if genres[item]], 2))
        diverse = 1 - sum(cosine(*pair) for pair in pairs) / len(pairs) if pairs else math.nan
        assert report.per_user[keys[0]][row] == pytest.approx(diverse, abs=1e-12, nan_ok=True)
        p, q = (shares(items, genres, list(family.groups)) for items in (world.train.get(user, ()), top))
        apart = math.nan if p is None or q is None else jensen_shannon(p, q)
        assert report.per_user[keys[1]][row] == pytest.approx(apart, abs=1e-12, nan_ok=True)


# ---------------------------------------------------------------- extremes


def measured(lists: dict[int, list[int]], genres: list[str]) -> dict[str, float]:
    world = World(2, len(genres), {0: {0, 1}, 1: {0, 1}}, {}, {}, lists)
    chosen = grouping(item_groups=pa.table({"item_id": range(len(genres)), "genre": genres}))
    return measure(world.lists, world.grouped(chosen), metrics=KEYS).metrics


@pytest.mark.parametrize(
    ("genres", "diversity", "miscalibration"),
    [
        (["a", "b", "a", "b"], 1.0, 0.0),  # the mix of the history, no two alike
        (["a", "a", "a", "a"], 0.0, 0.0),
        (["a", "a", "b", "b"], 0.0, 1.0),
        (["a", "a", "b", "c"], 1.0, 1.0),
    ],
)
def test_extremes(genres, diversity, miscalibration):
    found = measured({0: [2, 3], 1: [3, 2]}, genres)
    assert [found[key] for key in KEYS] == pytest.approx([diversity, miscalibration], abs=1e-12)


def test_recmetrics_similarity_of_a_list_is_the_complement():
    """Its formula: the mean of the cosines in the upper right triangle, on one-hot features."""
    features = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=float)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    similarity = (unit @ unit.T)[np.triu_indices(4, k=1)].mean()
    table = pa.table({"item_id": range(4), "genre": [["a"], ["a", "b"], ["b", "c"], ["c"]]})
    world = World(1, 4, {}, {}, {}, {0: [0, 1, 2, 3]})
    report = measure(world.lists, world.grouped(grouping(item_groups=table)), metrics=["intra_list_diversity@4/genre"])
    assert report.metrics["intra_list_diversity@4/genre"] == pytest.approx(1 - similarity, abs=1e-12)


# ---------------------------------------------------------------- as any other metric


def test_they_have_intervals_and_belong_to_families():
    rng = np.random.default_rng(0)
    world = random_world(rng, user_count=80)
    report = measure(world.lists, world.grouped(random_groups(rng, world)), (5,))
    found = intervals(report)
    for name in ("intra_list_diversity", "miscalibration"):
        key = f"{name}@5/shelf"
        assert found[key].low < report.metrics[key] < found[key].high
        assert [str(one) for one in report.keys if one.name == name] == [key]
    with pytest.raises(ConfigError, match="miscalibration@5/FAMILY"):
        MetricKey.parse("miscalibration@5")
