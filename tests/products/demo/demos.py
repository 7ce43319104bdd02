"""Made-up results of the demo, in the shape that the real one has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caged.products.demo.experiment import Demo, Difference, Judged, Shown, Visitor

MARKET: dict[str, Any] = {
    "parameters": {
        "rounds": 15,
        "test_rounds": 10,
        "slots": 12,
        "share_popular": 0.6,
        "share_model": 0.2,
        "share_explore": 0.2,
    },
    "seed": 7,
    "fingerprint": "0123456789abcdef" * 4,
    "counts": {"users": 2000, "items": 1500, "train": 70_000},
    "top_fifth_share": {"log": 0.71, "exposure": 0.6, "true_appeal": 0.29},
}


def row(method: str, natural: float, oracle: float, preference: float, first_bucket: float = 0.7) -> Judged:
    rest = (1 - first_bucket) / 9
    return Judged(
        method=method,
        natural={"recall@20": natural, "recall@20/niche": natural / 10, "tail_share@20": 0.1},
        oracle={"recall@20": oracle, "recall@20/niche": oracle / 10, "tail_share@20": 0.1234},
        true_preference=preference,
        exposure_by_bucket=[first_bucket, *[rest] * 9],
        best_epoch=None if method == "mostpop" else 12,
        seconds=1.0,
        intervals={"natural": (natural - 0.01, natural + 0.01), "oracle": (oracle - 0.001, oracle + 0.001)},
    )


def visitor(taste: str, *methods: str) -> Visitor:
    had = [Shown("A <Quiet> Garden", 3, False, False), Shown("Golden Window", 400, True, False)]
    shown = [Shown(f"Title {place}", 400 - place, place < 6, place % 5 == 0) for place in range(20)]
    return Visitor(f"u-{taste}", taste, had, 12, dict.fromkeys(methods, shown))


DEMO = Demo(
    market=MARKET,
    rows=[row("mostpop", 0.16, 0.0164, 0.16, first_bucket=1.0), row("lightgcn", 0.40, 0.055, 0.51)],
    differences=[Difference("mostpop", -0.0386, -0.041, -0.036)],
    best_true_preference=0.88,
    training_mass_by_bucket=[0.55, *[0.05] * 9],
    echo=[{"round": last, "gini": 0.2 + last / 50, "gini_random": 0.07} for last in (5, 10, 15)],
    explore_clicks=1323,
    seconds=21.0,
    visitors=[visitor(taste, "mostpop", "lightgcn") for taste in ("niche-taste", "diverse", "blockbuster")],
)


def with_debiased(natural: float, preference: float) -> Demo:
    return replace(DEMO, rows=[*DEMO.rows, row("debiased", natural, 0.06, preference)])


def with_top_fifth(log: float, appeal: float) -> Demo:
    market = {**MARKET, "top_fifth_share": {"log": log, "exposure": log, "true_appeal": appeal}}
    return replace(DEMO, market=market)


def with_caged(mean: float, low: float | None, high: float | None) -> Demo:
    found = Difference("caged", mean, low, high)
    return replace(
        DEMO, rows=[*DEMO.rows, row("caged", 0.4, 0.055 + mean, 0.5)], differences=[*DEMO.differences, found]
    )


def with_all_methods() -> Demo:
    """Four methods, as `caged demo` compares them, each against LightGCN with an interval."""
    judged = with_caged(0.0014, 0.0007, 0.002)
    return replace(
        judged,
        rows=[*judged.rows, row("ips", 0.35, 0.069, 0.66)],
        differences=[*judged.differences, Difference("ips", 0.0149, 0.0134, 0.0164)],
        visitors=[
            visitor(taste, "mostpop", "lightgcn", "caged", "ips") for taste in ("niche-taste", "diverse", "blockbuster")
        ],
    )
