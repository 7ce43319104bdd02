"""How often intervals hold the truth: lists of users drawn from a market whose true values are known.

    python -m tools.coverage_table docs/metrics.md

measures it anew, in minutes, and rewrites what stands between `<!-- coverage: all -->` and `<!-- end -->`. The slow
test of this file measures it with another seed. Neither is one with which a limit of the intervals was chosen (0, 1).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from caged.data.families import Family
from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.popularity import BUCKETS, ITEM_GROUPS
from caged.evaluation.groups import Groups
from caged.evaluation.intervals import intervals
from caged.evaluation.measure import Report, columns_of
from caged.evaluation.metrics import MetricKey, with_sums
from caged.files import write_text
from caged.page.text_table import markdown_table
from tools.marked import filled

K = 20
SIZES = (50, 200, 1000)
REPEATS, DRAWS, MANY_USERS = 1000, 400, 1_000_000
SEED = 7  # of the table
KEYS = (
    "recall@20",
    "recall@20/niche",
    "recall@20/niche-taste",
    "tail_share@20",
    "delta_gap@20",
    "exposure_kl@20",
    "exposure_rate@20/niche",
    "pop_rsp@20",
    "pooled_recall@20/niche",
    "pop_reo@20",
    "rsp@20/genre",
    "reo@20/genre",
)
GENRES = ("a", "b", "c", "d", "e")
HEADER = ("interval of", *(f"{size:,} users" for size in SIZES))


@dataclass(frozen=True)
class Market:
    """Users with a share of niche places of their own; popular and niche items, and genres, are found and shown alike
    up to `advantage`."""

    niche_places: float = 0.4
    advantage: float = 1.02  # nearly parity: where an absolute value is hardest

    def report(self, rng: np.random.Generator, users: int) -> Report:
        niche_share = rng.beta(4 * self.niche_places, 4 * (1 - self.niche_places), users)
        listed = np.column_stack([K - (niche := rng.binomial(K, niche_share)), niche])
        relevant = np.column_stack([rng.integers(1, 4, users), rng.integers(1, 5, users)])
        found = rng.beta(1.0, 4.0, users)
        hits = np.column_stack(
            [rng.binomial(relevant[:, 0], found), rng.binomial(relevant[:, 1], found / self.advantage)]
        )
        eligible = np.column_stack([rng.integers(180, 220, users), rng.integers(250, 320, users)])
        arp = 5 + 40 * (1 - niche_share) + rng.exponential(3, users)
        named = dict(enumerate(ITEM_GROUPS))
        per_user = {
            "recall@20": hits.sum(axis=1) / relevant.sum(axis=1),
            "recall@20/niche": hits[:, 1] / relevant[:, 1],
            "tail_share@20": niche / K,
            "arp@20": arp,
        }
        sums: dict[str, Array] = {
            "listed": np.ones(users),
            "profile_popularity": 20 + rng.exponential(15, users),
            "bucket_exposure@20": _by_tenth(rng, listed),
            **{f"hits@20/{name}": hits[:, n] for n, name in named.items()},
            **{f"relevant/{name}": relevant[:, n] for n, name in named.items()},
            **{f"listed_unseen@20/{name}": listed[:, n] for n, name in named.items()},
            **{f"eligible/{name}": eligible[:, n] for n, name in named.items()},
            **self._by_genre(rng.spawn(1)[0], users, found),
        }
        return Report(
            users=np.arange(users),
            metrics=dict.fromkeys(KEYS, 0.0),
            users_per_metric={},
            per_user=per_user,
            sums=sums,
            counts={},
            user_group=(rng.random(users) >= 0.2).astype(np.int8),
            bucket_mass=np.array([300, 180, 110, 90, 80, 70, 60, 50, 40, 20]),
            groups=_genres(),
        )

    def _by_genre(self, rng: np.random.Generator, users: int, found: Array) -> dict[str, Array]:
        """Items of several genres, each hardly less served than the one before."""
        sums: dict[str, Array] = {}
        for place, genre in enumerate(GENRES):
            served = self.advantage**-place
            relevant, eligible = rng.integers(0, 4, users), rng.integers(80, 120, users)
            sums[f"relevant/genre={genre}"], sums[f"eligible/genre={genre}"] = relevant, eligible
            sums[f"hits@20/genre={genre}"] = rng.binomial(relevant, found * served)
            sums[f"listed_unseen@20/genre={genre}"] = rng.binomial(eligible, rng.beta(2, 48, users) * served)
        return sums


def _genres() -> Groups:
    """Only their names matter here."""
    nothing = np.zeros(0, dtype=np.int64)
    train = Interactions.build(nothing, nothing, user_ids=IdMap.range(0), item_ids=IdMap.range(0))
    return Groups(train, item_families={"genre": Family("genre", GENRES, np.zeros((1, 0), dtype=np.int8))})


def _by_tenth(rng: np.random.Generator, listed: Array) -> Array:
    """Popular places fall on the first two tenths, niche ones on the others, each user with a taste of their own."""
    first = rng.binomial(listed[:, 0], rng.beta(3, 2, len(listed)))
    others = rng.multinomial(listed[:, 1], np.arange(BUCKETS - 2, 0, -1) / sum(range(1, BUCKETS - 1)))
    return np.column_stack([first, listed[:, 0] - first, others])


def truth(market: Market, rng: np.random.Generator) -> dict[str, float]:
    """The values over so many users that chance is gone."""
    report = market.report(rng, MANY_USERS)
    return {
        key: float(
            formula.value(np.array([part.sum() for part in columns_of(key, formula, report)]), report.bucket_mass)
        )
        for key, formula in with_sums([MetricKey.parse(key) for key in KEYS]).items()
    }


def coverage(users: int, repeats: int = REPEATS, seed: int = SEED) -> dict[str, tuple[float, float]]:
    """Of each key, the share of the intervals that hold the truth, and the share of samples that have one."""
    rng, market = np.random.default_rng([seed, users]), Market()
    true = truth(market, np.random.default_rng(seed))
    held, made = dict.fromkeys(KEYS, 0), dict.fromkeys(KEYS, 0)
    for _ in range(repeats):
        for key, found in intervals(market.report(rng, users), draws=DRAWS).items():
            made[key] += 1
            held[key] += found.low <= true[key] <= found.high
    return {key: (held[key] / max(made[key], 1), made[key] / repeats) for key in KEYS}


def table(repeats: int = REPEATS) -> str:
    by_size = [coverage(users, repeats) for users in SIZES]
    return markdown_table(HEADER, [[f"`{key}`", *(f"{found[key][0]:.1%}" for found in by_size)] for key in KEYS])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure the coverage of intervals anew.")
    parser.add_argument("document", type=Path)
    document = parser.parse_args(arguments).document
    measured = table()
    write_text(document, filled(document.read_text(encoding="utf-8"), {"coverage": lambda _: measured}))


if __name__ == "__main__":
    main()
