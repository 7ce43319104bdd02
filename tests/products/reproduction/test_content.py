"""What a record holds is read, and what is damaged is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from caged.errors import RunError
from caged.products.reproduction.cells import Seeds, cell_of, gpu_minutes, has_lost_users, outcome_of
from caged.products.reproduction.content import curve_of, densities_of, gpu_seconds, metric_of, users_of
from caged.products.study import PlannedRun, Recorded

RUN = PlannedRun(dataset="shop", data="logs/shop.csv", protocol="honest", row="lightgcn", method="lightgcn", seed=1)
CURVE = {"name": "before", "updates": 0, "mean": 0.3, "above": 0.0, "values": [1.0, 1.0]}


def record(**content: Any) -> Recorded:
    return Recorded(RUN, Path("results/seed1.json"), "finished", content)


def test_what_is_there_is_read() -> None:
    one = record(
        metrics={"recall@20": 1, "map@20": None},
        per_user={"ids": "a", "sha256": "b"},
        history=[{"stage": "pretrain"}, {"stage": "train", "epochs": [2, 4], "values": [0.1, 0.2]}],
        densities=[CURVE],
        hardware={"gpu": "NVIDIA H200", "side_by_side": 2},
        seconds={"total": 9.0},
    )
    assert (metric_of(one, "recall@20"), metric_of(one, "map@20"), metric_of(one, "ndcg@20")) == (1.0, None, None)
    assert users_of(one) == {"ids": "a", "sha256": "b"}
    assert curve_of(one) == {2: 0.1, 4: 0.2}
    assert densities_of(one) == [CURVE]
    assert gpu_seconds(one) == 4.5


@pytest.mark.parametrize("content", [{}, dict.fromkeys(["metrics", "history", "densities", "hardware", "seconds"])])
def test_what_is_not_there_is_not_known(content: dict[str, Any]) -> None:
    one = record(**content)
    assert metric_of(one, "recall@20") is None
    assert users_of(one) is None
    assert (curve_of(one), densities_of(one), gpu_seconds(one)) == ({}, [], 0.0)


def damaged(what: str, words: str) -> Any:
    return pytest.raises(
        RunError, match=rf"results/seed1\.json is damaged: {what} is .*, it must be .*{words}.*; restore"
    )


@pytest.mark.parametrize("metrics", [[], "high", 3])
def test_metrics_are_a_table(metrics: Any) -> None:
    with damaged("metrics", "a table"):
        cell_of(Seeds((record(metrics=metrics),)), None, "recall@20")


@pytest.mark.parametrize("value", ["high", [0.1], True, float("nan"), float("inf")])
def test_a_metric_is_a_number(value: Any) -> None:
    with damaged("metric recall@20", "a number"):
        cell_of(Seeds((record(metrics={"recall@20": value}),)), None, "recall@20")


@pytest.mark.parametrize("about", [None, {}, [], "there", {"ids": "a"}, {"sha256": "b"}, {"ids": 1, "sha256": 2}])
def test_users_have_checksums(about: Any) -> None:
    one = record(metrics={"recall@20": 0.1}, per_user=about)
    row = Seeds((one,))
    with damaged("per_user", "ids and sha256"):
        outcome_of(row, row, "recall@20")
    with damaged("per_user", "ids and sha256"):
        has_lost_users(one)


@pytest.mark.parametrize(
    "stage",
    [
        None,
        "train",
        {},
        {"epochs": [1]},
        {"epochs": [1, 2], "values": [0.1]},
        {"epochs": [1], "values": ["0.1"]},
        {"epochs": [1], "values": [None]},
        {"epochs": ["1"], "values": [0.1]},
        {"epochs": [0], "values": [0.1]},
        {"epochs": [1.5], "values": [0.1]},
        {"epochs": {"1": 1}, "values": [0.1]},
    ],
)
def test_a_stage_has_a_value_per_epoch(stage: Any) -> None:
    with damaged("the last stage of history", "as many epochs as values"):
        curve_of(record(history=[stage]))


@pytest.mark.parametrize("part", ["history", "densities"])
@pytest.mark.parametrize("value", [{}, {"a": 1}, "text", 1])
def test_histories_and_densities_are_lists(part: str, value: Any) -> None:
    with damaged(part, "a list"):
        (curve_of if part == "history" else densities_of)(record(**{part: value}))


@pytest.mark.parametrize(
    "curve",
    [
        None,
        "curve",
        {},
        {**CURVE, "values": []},
        {**CURVE, "values": [1.0]},
        {**CURVE, "mean": "x"},
        {**CURVE, "name": 1},
    ],
)
def test_densities_have_bins(curve: Any) -> None:
    with damaged("one of its densities", "name, updates, mean, above"):
        densities_of(record(densities=[CURVE, curve]))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"hardware": []}, "hardware"),
        ({"hardware": "GPU"}, "hardware"),
        ({"seconds": 3}, "seconds"),
        ({"seconds": {"total": "long"}}, "seconds.total"),
        ({"seconds": {"total": None}}, "seconds.total"),
        ({"seconds": {"total": -1}}, "seconds.total"),
        ({"hardware": {"side_by_side": 0}}, "hardware.side_by_side"),
        ({"hardware": {"side_by_side": "two"}}, "hardware.side_by_side"),
    ],
)
def test_minutes_rest_on_numbers(content: dict[str, Any], what: str) -> None:
    with damaged(what, ""):
        gpu_minutes([record(**content)])
