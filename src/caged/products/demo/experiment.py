"""The demo: a shop that sells what it shows, and what becomes visible when the truth is known.

Simulates the built-in market at its defaults, trains a few methods on its log, and judges each of them twice: by the
later clicks of the same shop (natural) and by what the users truly like (oracle). The epoch is chosen on held-out
clicks from the shop's own random exploration, because clicks on what a popularity-driven shop chose to show would
stop a debiased method early. Nothing here is tuned to a method.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.data.market import (
    Market,
    MarketConfig,
    best_true_preference_at_k,
    simulate,
    true_preference_at_k,
)
from caged.data.popularity import BUCKETS, ItemGroups, gini
from caged.data.seen import Seen
from caged.data.splits.kinds import Split, carve_validation
from caged.data.splits.marked import validate_on
from caged.errors import ConfigError
from caged.evaluation.evaluate import Evaluation, evaluate
from caged.evaluation.intervals import intervals
from caged.evaluation.metrics import reported_keys
from caged.evaluation.significance import paired_interval
from caged.models import display_name, registered
from caged.products.audit import AuditResult, ExampleItem, audit_evaluation, example_of, typical_users
from caged.progress import EpochProgress, ProgressReport, unreported
from caged.runs.recommender import Recommender

K = 20
WINDOW = 5  # rounds per point of the echo plot; Gini of fewer counts is inflated
BASELINE = "lightgcn"
ADJUSTED = f"{BASELINE} adjusted"  # popularity taken out after training
METHODS = ("mostpop", BASELINE, "ips", "caged", "softmax", ADJUSTED)
# Backbone and training of the published measurements of this market; shared by all methods.
BACKBONE = {"embedding_size": 64, "layers": 2, "l2": 1e-4}
TRAINING = {"learning_rate": 5e-3, "batch_size": 2048, "epochs": 40, "patience": 10}
OWN = {"softmax": {"l2": 1e-5, "candidate_rows": 512}}  # l2 is its default; fewer candidates are faster on a CPU


@dataclass(frozen=True)
class Judged:
    """One method, judged by the shop's habit and by the truth."""

    method: str
    natural: dict[str, float]
    oracle: dict[str, float]
    true_preference: float
    exposure_by_bucket: list[float]  # share of the list places, most popular tenth of the items first
    best_epoch: int | None
    seconds: float
    intervals: dict[str, tuple[float, float]]  # 95%, of recall, by test (natural, oracle); absent where there is none


@dataclass(frozen=True)
class Shown:
    """An item in front of a person."""

    title: str
    clicks: int  # in the training log
    popular: bool
    liked: bool  # it is in the person's oracle test


@dataclass(frozen=True)
class Visitor:
    """One person: what they clicked, and what each method shows them."""

    user_id: str
    taste: str | None  # niche-taste, diverse, blockbuster
    clicked: list[Shown]  # a few, from the least to the most popular
    clicks: int
    lists: dict[str, list[Shown]]  # by method


@dataclass(frozen=True)
class Difference:
    """Oracle recall of a method less that of LightGCN, person by person: mean, and its 95% interval over people."""

    method: str
    mean: float
    low: float | None  # None: there is no interval
    high: float | None


@dataclass(frozen=True)
class Demo:
    market: dict[str, Any]  # Market.summary()
    rows: list[Judged]
    differences: list[Difference]  # to LightGCN; none where it was not trained
    best_true_preference: float
    training_mass_by_bucket: list[float]
    echo: list[dict[str, float]]  # per window of rounds: last round, Gini of exposure here and under exploration only
    explore_clicks: int
    seconds: float
    visitors: list[Visitor]  # one of each taste

    def row(self, method: str) -> Judged:
        return next(row for row in self.rows if row.method == method)

    def difference(self, method: str) -> Difference | None:
        return next((found for found in self.differences if found.method == method), None)


def run_demo(
    *,
    seed: int = 1,
    methods: Sequence[str] = METHODS,
    device: str = "auto",
    config: MarketConfig | None = None,
    say: Callable[[str], None] = lambda message: None,
    audited: Callable[[str, AuditResult], None] = lambda method, audit: None,
    trained: Callable[[str, Recommender, dict[str, str]], None] = lambda method, model, titles: None,
    progress: ProgressReport = unreported,
) -> Demo:
    """Simulate, train, judge; `audited` receives the audit of each method, natural test first, oracle beside it.

    `trained` receives each model with the titles of the items.
    """
    begun = time.perf_counter()
    market = simulate(replace(config or MarketConfig(), seed=seed), progress=progress)
    say(f"simulated {market.config.rounds} rounds: {market.train.num_rows:,} clicks by {market.users.num_rows:,} users")
    train, valid = _hold_out_explored(market.interactions("train"), seed)
    say(f"the epoch is chosen on {len(valid):,} held-out clicks from random exploration, not on the shop's own choice")
    groups = train.item_groups
    titles = dict(zip(market.items["item_id"].to_pylist(), market.items["title"].to_pylist(), strict=True))
    titles = {str(item): title for item, title in titles.items()}
    rows, judged = [], {}
    models: dict[str, _Made] = {}
    for name in methods:
        models[name] = _made(name, models, train, valid, seed, device, progress)
        row, natural, oracle = _judge(name, models[name], market, train, valid)
        judged[name] = oracle
        audited(name, _audit(name, natural, oracle, titles))
        trained(name, models[name].model, titles)
        rows.append(row)
        say(f"{name} trained and judged in {row.seconds:.0f} s")
    everyone = np.arange(train.user_count)
    seen = Seen(train, valid).keys
    return Demo(
        market=market.summary(),
        rows=rows,
        differences=_differences({name: one.report.per_user[f"recall@{K}"] for name, one in judged.items()}),
        best_true_preference=float(best_true_preference_at_k(everyone, K, market.world, seen).mean()),
        training_mass_by_bucket=_shares(train.item_degrees, groups),
        echo=_echo(market),
        explore_clicks=len(valid),
        seconds=time.perf_counter() - begun,
        visitors=_visitors(judged, titles),
    )


def _hold_out_explored(log: Interactions, seed: int) -> tuple[Interactions, Interactions]:
    """What `--validate-on source=explore` does: 1/8 of each user's clicks are candidates, explored ones validate."""
    train, candidates = carve_validation(log, seed=seed)
    chosen = validate_on(Split(train, candidates, None, kind="demo"), "source=explore")
    assert chosen.valid is not None
    return chosen.train, chosen.valid


@dataclass(frozen=True, eq=False)
class _Made:
    """A trained model, the epoch it kept, and how long it took."""

    model: Recommender
    best_epoch: int | None
    seconds: float


def _made(
    name: str,
    earlier: dict[str, _Made],
    train: Interactions,
    valid: Interactions,
    seed: int,
    device: str,
    progress: ProgressReport,
) -> _Made:
    """Trained; or LightGCN with as much popularity taken out as the held-out clicks allow."""
    begun = time.perf_counter()
    if name == ADJUSTED:
        return _Made(_adjusted(earlier[BASELINE].model), None, time.perf_counter() - begun)
    known = set(registered(name).config.__dataclass_fields__)
    backbone = {key: value for key, value in {**BACKBONE, **OWN.get(name, {})}.items() if key in known}
    watch = _BestEpoch()
    model = Recommender(name, seed=seed, device=device, **backbone, **TRAINING)
    model.fit(train, valid, k=K, observers=(watch, EpochProgress(progress, display_name(name))), progress=False)
    return _Made(model, watch.best, time.perf_counter() - begun)


def _adjusted(model: Recommender) -> Recommender:
    """As much popularity out as keeps 99% of the recall; in a shop so small that it is 0, nothing is taken out."""
    try:
        return model.adjusted(k=K)
    except ConfigError:
        return model.adjusted(strength=0.0)


def _judge(
    name: str, made: _Made, market: Market, train: Interactions, valid: Interactions
) -> tuple[Judged, Evaluation, Evaluation]:
    """The method judged, and the two judgements."""
    begun = time.perf_counter()
    fitted = made.model.artefact
    scorer = fitted.scorer()
    natural, oracle = (
        evaluate(
            scorer,
            train=train,
            valid=valid,
            relevant=market.interactions(part),
            metrics=reported_keys((K,)),
            device=fitted.device,
        )
        for part in ("test_natural", "test_oracle")
    )
    lists = oracle.lists
    listed = lists.items[:, :K]
    preference = true_preference_at_k(listed, lists.users, market.world)
    exposure = np.bincount(listed[listed >= 0], minlength=train.item_count)
    row = Judged(
        method=name,
        natural=natural.report.metrics,
        oracle=oracle.report.metrics,
        true_preference=float(np.nanmean(preference)),
        exposure_by_bucket=_shares(exposure, train.item_groups),
        best_epoch=made.best_epoch,
        seconds=made.seconds + time.perf_counter() - begun,
        intervals={
            test: found[:2]
            for test, one in (("natural", natural), ("oracle", oracle))
            if (found := intervals(one.report).get(f"recall@{K}")) is not None
        },
    )
    return row, natural, oracle


def _audit(name: str, natural: Evaluation, oracle: Evaluation, titles: dict[str, str]) -> AuditResult:
    return audit_evaluation(
        natural,
        further={"oracle": (oracle, "oracle")},
        titles=titles,
        name=f"{display_name(name)} in the simulated shop",
    )


def _visitors(judged: dict[str, Evaluation], titles: dict[str, str]) -> list[Visitor]:
    """Of each taste the person whom LightGCN (or the first method) treats most typically, with every method's list."""
    base = judged.get(BASELINE) or next(iter(judged.values()))
    found = []
    for user in typical_users(base.lists, base.reference, K, per_group=1):
        seen = {name: example_of(one.lists, one.reference, user, K, titles) for name, one in judged.items()}
        person = next(iter(seen.values()))
        lists = {name: [_shown(item) for item in one.shown] for name, one in seen.items()}
        clicked = [_shown(item) for item in person.profile]
        found.append(Visitor(person.user_id, person.group, clicked, person.profile_size, lists))
    return found


def _shown(item: ExampleItem) -> Shown:
    return Shown(item.title or item.item_id, item.degree, item.popular, item.relevant)


def _differences(recalls: dict[str, Array]) -> list[Difference]:
    """Every method against LightGCN, among the same people."""
    if BASELINE not in recalls:
        return []
    base = recalls[BASELINE]
    found = []
    for name, values in recalls.items():
        if name != BASELINE:
            interval = paired_interval(base, values)
            low, high = (None, None) if interval is None else (interval.low, interval.high)
            found.append(Difference(name, float(np.nanmean(values - base)), low, high))
    return found


class _BestEpoch:
    best: int | None = None

    def epoch(self, line: dict[str, Any]) -> None:
        self.best = line["best_epoch"]


def _shares(counts: Array, groups: ItemGroups) -> list[float]:
    mass = np.bincount(groups.bucket, weights=counts, minlength=BUCKETS)
    return [float(share) for share in mass / mass.sum()]


def _echo(market: Market) -> list[dict[str, float]]:
    """Concentration of exposure over time, beside the same shop showing items at random."""
    random_shop = simulate(replace(market.config, share_popular=0.0, share_model=0.0, share_explore=1.0))
    return [
        {
            "round": last,
            "gini": gini(market.exposures(last - WINDOW + 1, last)),
            "gini_random": gini(random_shop.exposures(last - WINDOW + 1, last)),
        }
        for last in range(WINDOW, market.config.rounds + 1, WINDOW)
    ]
