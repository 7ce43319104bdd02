"""The figures of a study: what is drawn from which records, and why something is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caged.page.scatter import Point
from caged.products.reproduction.figures import Drawn, front, smoothed, study_figures
from caged.products.study import Plan, Recorded, chosen
from caged.runs.densities import Moment, recorded_densities
from tests.products.reproduction.studied import PLAN, records_of, runs_of, small_plan, with_section, write_record


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return small_plan(tmp_path)


def drawn(plan: Plan) -> dict[str, Drawn]:
    return {one.name: one for one in study_figures(plan, records_of(plan))}


def drawing(plan: Plan, name: str) -> str:
    svg = drawn(plan)[name].svg
    assert svg is not None
    return svg


def record_all(plan: Plan, row: str, value: float, **changes: Any) -> None:
    for run in runs_of(plan, row):
        write_record(plan, run, value + 0.001 * run.seed, **changes)


def test_what_is_not_recorded_is_not_drawn_and_says_why(plan: Plan) -> None:
    found = drawn(plan)
    assert all(one.svg is None for one in found.values())
    assert found["lambda-epinions-caged-honest-recall"].reason == "0 of 3 values recorded, and a curve needs two"
    assert found["trade-off-epinions-caged-honest"].reason == "0 of 3 rows recorded, and a trade-off needs two"
    assert found["learning-epinions-caged-paper"].reason == "no record holds a learning curve"
    assert "--save-weights" in found["densities-pinterest-caged-paper"].reason


def test_a_curve_has_the_value_of_the_preset_among_the_others_and_the_range_of_its_seeds(plan: Plan) -> None:
    record_all(plan, "caged", 0.12)
    record_all(plan, "caged-lam-0", 0.10)
    svg = drawing(plan, "lambda-epinions-caged-honest-recall")
    assert "Recall@20 of CAGED over lambda: Epinions, honest" in svg
    assert "<title>0, Recall@20: 0.101</title>" in svg
    assert "<title>1.2, Recall@20: 0.121</title>" in svg  # of the seed that the other value has
    assert "mean and range of 5 seeds at the preset&#x27;s value: 0.123 (0.121 to 0.125)" in svg.replace("'", "&#x27;")
    assert "1.4, " not in svg  # not run
    assert "the axis does not begin at zero" in svg


def test_who_draws_some_sections_sees_all_seeds_of_their_rows(plan: Plan) -> None:
    """As in the tables; but nothing of a protocol that was left out."""
    for row in ("lightgcn", "caged"):
        record_all(plan, row, 0.12)
        write_record(plan, runs_of(plan, row, protocol="paper")[0], 0.13)
    whole, records = drawn(plan), records_of(plan)
    for words in (["main"], ["main", "honest"]):
        some = {one.name: one for one in study_figures(plan, records, chosen(plan, words))}
        assert some.items() <= whole.items()
        assert any(name.endswith("-paper") for name in some) == (words == ["main"])
    record_all(plan, "caged-lam-0", 0.10)
    curve = "lambda-epinions-caged-honest-recall"
    some = {one.name: one for one in study_figures(plan, records_of(plan), chosen(plan, ["lambda"]))}
    assert some[curve] == drawn(plan)[curve]
    assert "range of 5 seeds" in str(some[curve].svg)


def test_seeds_that_all_values_have_make_intervals(plan: Plan) -> None:
    record_all(plan, "caged", 0.12)
    records = records_of(plan)
    (other,) = runs_of(plan, "caged-lam-0")
    for seed in (1, 2, 3):
        run = replace(other, seed=seed)
        content = {"metrics": {"recall@20": 0.1 + 0.001 * seed, "ndcg@20": 0.1}}
        records[run] = Recorded(run, plan.results / "none.json", "finished", content)
    found = {one.name: one.svg for one in study_figures(plan, records, list(records))}
    svg = found["lambda-epinions-caged-honest-recall"]
    assert svg is not None
    assert "<title>0, Recall@20: 0.102 (0.0995 to 0.104)</title>" in svg
    assert "<title>1.2, Recall@20: 0.122 (0.12 to 0.124)</title>" in svg


def test_the_trade_off_has_a_point_per_row_of_the_main_table(plan: Plan) -> None:
    for row, value in (("lightgcn", 0.1), ("caged", 0.12), ("caged-no-momentum", 0.2)):
        record_all(plan, row, value)
    svg = drawing(plan, "trade-off-epinions-caged-honest")
    assert "<title>CAGED: Recall@20 0.123 (0.121 to 0.125), Recall@20 of niche items 0.123" in svg
    assert "LightGCN" in svg
    assert "without momentum" not in svg  # of another table
    assert "IPS" not in svg  # not run


def test_the_front_goes_from_the_smallest_recall_to_the_largest() -> None:
    points = {"high": Point(3, 1), "beaten": Point(1.5, 1.5), "low": Point(1, 3), "middle": Point(2, 2)}
    assert front(points) == ["low", "middle", "high"]
    assert front({"same": Point(1, 1), "worse": Point(1, 0.5)}) == ["same"]


def test_rows_of_one_title_are_points_and_curves_of_their_own(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, PLAN.replace('title = "IPS"', 'title = "LightGCN"'))
    history = [{"stage": "train", "epochs": [1, 2], "values": [0.1, 0.2]}]
    for row, value in (("lightgcn", 0.1), ("ips", 0.12)):
        record_all(plan, row, value, history=history)
    for name in ("trade-off-epinions-caged-honest", "learning-epinions-caged-honest"):
        svg = drawing(plan, name)
        assert "LightGCN (lightgcn)" in svg
        assert "LightGCN (ips)" in svg


def test_data_that_is_a_path_names_no_file(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, PLAN.replace('data = "epinions-caged"', 'data = "logs/shop.csv"'))
    names = [one.name for one in study_figures(plan, records_of(plan))]
    assert {"trade-off-epinions-honest", "lambda-epinions-honest-recall", "densities-epinions-paper"} <= {*names}
    assert not any("/" in name for name in names)
    for row, value in (("lightgcn", 0.1), ("caged", 0.12)):
        for run in runs_of(plan, row, data="logs/shop.csv"):
            write_record(plan, run, value)
    assert "niche Recall@20: epinions, honest" in drawing(plan, "trade-off-epinions-honest")


def test_values_that_are_words_are_no_curve(tmp_path: Path) -> None:
    rows = {"kind": 'method = "caged"\nvary = { key = "method.likelihood", values = ["constant", "shuffled"] }'}
    plan = small_plan(tmp_path, with_section("words", rows))
    for run in plan.of("words"):
        write_record(plan, run, 0.1)
    assert not any(name.startswith("words") for name in drawn(plan))


@pytest.mark.parametrize(
    ("values", "said"), [("1e-6, 1e-3, 0.1", True), ("0.001, 0.1", False), ("0, 1e-6, 0.1", False)]
)
def test_values_of_many_magnitudes_stand_on_a_logarithmic_axis(tmp_path: Path, values: str, said: bool) -> None:
    rows = {"tried": f'method = "lightgcn"\nvary = {{ key = "method.l2", values = [{values}] }}'}
    plan = small_plan(tmp_path, with_section("rates", rows, others=[]))
    for run in plan.of("rates"):
        write_record(plan, run, 0.1)
    svg = drawing(plan, "rates-epinions-caged-honest-recall")
    assert ("l2, logarithmic; 1 seed per value" in svg) is said


def test_a_row_of_another_method_is_no_value_of_the_preset(tmp_path: Path) -> None:
    rows = {"tried": 'method = "caged"\nvary = { key = "method.lam", values = [0.5, 1] }'}
    plan = small_plan(tmp_path, with_section("beside", rows, others=["lightgcn"]))
    for run in plan.runs:
        if run.row in ("lightgcn", "tried-0.5", "tried-1"):
            write_record(plan, run, 0.1)
    svg = drawing(plan, "beside-epinions-caged-honest-recall")
    assert "Recall@20 of CAGED over lambda" in svg
    assert "preset" not in svg


def test_learning_curves_are_those_of_the_part_that_decided(plan: Plan) -> None:
    history = [
        {"stage": "pretrain", "epochs": [1], "values": [0.9]},
        {"stage": "train", "epochs": [1, 2, 3], "values": [0.1, 0.2, 0.15]},
    ]
    record_all(plan, "caged", 0.12, history=history)
    (of_paper,) = runs_of(plan, "caged", protocol="paper")
    write_record(plan, of_paper, 0.1, history=history[1:])
    svg = drawing(plan, "learning-epinions-caged-honest")
    assert "Recall@20 on the validation part" in svg
    assert "2, CAGED: 0.2" in svg
    assert "0.9" not in svg  # the last stage only
    assert "Recall@20 on the test part" in drawing(plan, "learning-epinions-caged-paper")


def test_rows_without_a_learning_curve_are_named(plan: Plan) -> None:
    record_all(plan, "caged", 0.12, history=[{"stage": "train", "epochs": [1, 2], "values": [0.1, 0.2]}])
    assert drawn(plan)["learning-epinions-caged-honest"].left_out == ""  # the others are not run
    record_all(plan, "lightgcn", 0.1)
    record_all(plan, "ips", 0.1)
    assert drawn(plan)["learning-epinions-caged-honest"].left_out == ("LightGCN, IPS (no learning curve recorded)")


def test_what_is_adjusted_has_no_learning_curve_of_its_own(plan: Plan) -> None:
    history = [{"stage": "train", "epochs": [1, 2], "values": [0.1, 0.2]}]
    record_all(plan, "caged", 0.12, history=history)
    records = records_of(plan)
    adjusted = {run: replace(one, run=replace(one.run, kind="adjust")) for run, one in records.items()}
    found = {one.name: one for one in study_figures(plan, adjusted)}
    assert found["learning-epinions-caged-honest"].svg is None


def test_densities_stand_on_the_axis_of_the_paper(plan: Plan) -> None:
    weights = np.random.default_rng(0).random(500) / 5
    moments = [Moment("before", 0, weights), Moment("during", 4, 1.5 * weights), Moment("after", 9, 20 * weights)]
    densities = recorded_densities(moments, np.zeros(500, dtype=int), 1)
    (of_paper,) = runs_of(plan, "caged", protocol="paper")
    write_record(plan, of_paper, 0.1, densities=densities)
    svg = drawing(plan, "densities-epinions-caged-paper")
    assert "before (mean " in svg
    assert "during (4 updates, mean " in svg
    assert "% above 1)" in svg
    assert ">0.2</text>" in svg
    assert ">1.0</text>" in svg


@pytest.mark.parametrize(
    ("above", "said"),
    [(0.0, "(mean 0.200)"), (0.0001, "mean 0.200, under 0.1% above 1"), (0.0123, "mean 0.200, 1.2% above 1")],
)
def test_a_small_share_above_one_is_not_called_none(plan: Plan, above: float, said: str) -> None:
    (run,) = runs_of(plan, "caged", protocol="paper")
    curve = {"name": "before", "updates": 0, "mean": 0.2, "above": above, "values": [1.0] * 10}
    write_record(plan, run, 0.1, densities=[curve])
    svg = drawing(plan, "densities-epinions-caged-paper")
    assert said in svg
    assert "0.0%" not in svg
    assert ("above 1" in svg) is (above > 0)


def test_densities_are_titled_by_their_row(plan: Plan) -> None:
    densities = recorded_densities([Moment("before", 0, np.full(500, 0.1))], np.zeros(500, dtype=int), 1)
    (run,) = runs_of(plan, "caged-no-momentum", protocol="honest")
    write_record(plan, run, 0.1, densities=densities)
    assert "CAGED without momentum" in drawing(plan, "densities-epinions-caged-honest")


def test_smoothing_keeps_the_area_and_levels_what_zigzags() -> None:
    centres = (np.arange(100) + 0.5) / 100
    bins = np.zeros(100)
    bins[[0, 30, 32, 99]] = 25.0
    found = smoothed(bins, centres)
    assert found.sum() == pytest.approx(bins.sum())
    assert found.min() >= 0
    assert found[31] > 0.99 * found[30]
    assert smoothed(np.ones(100), centres) == pytest.approx(np.ones(100))
