"""Means, intervals, tests and gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caged.errors import RunError
from caged.evaluation.significance import paired_test, seed_interval, welch_test
from caged.products.reproduction.cells import Cell, Gap, Seeds, cell_of, gpu_minutes, has_lost_users, outcome_of
from caged.products.study import Plan, Recorded
from caged.runs.recorded_users import users_file
from tests.products.reproduction.studied import records_of, runs_of, small_plan, write_record

LOW, HIGH = (0.100, 0.102, 0.098, 0.101, 0.104), (0.110, 0.113, 0.107, 0.111, 0.109)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return small_plan(tmp_path)


def recorded_rows(plan: Plan, count: int, **changes: object) -> tuple[Seeds, Seeds]:
    """LightGCN and CAGED with so many seeds."""
    for row, values in (("lightgcn", LOW), ("caged", HIGH)):
        for run, value in zip(sorted(runs_of(plan, row), key=lambda run: run.seed)[:count], values, strict=False):
            write_record(plan, run, value, **changes)  # type: ignore[arg-type]
    return seeds_of(plan, "lightgcn"), seeds_of(plan, "caged")


def seeds_of(plan: Plan, row: str) -> Seeds:
    found = records_of(plan)
    return Seeds(tuple(found[run] for run in sorted(runs_of(plan, row), key=lambda run: run.seed)))


def test_three_seeds_have_intervals(plan: Plan) -> None:
    base, caged = recorded_rows(plan, 3)
    cell = cell_of(caged, base, "recall@20")
    assert isinstance(cell, Cell)
    assert (cell.mean, cell.seeds) == (pytest.approx(0.11), 3)
    assert cell.half == pytest.approx(4.302653 * 0.003 / 3**0.5)  # t(0.975, 2) * sd / sqrt n
    assert cell.change == pytest.approx(10.0)
    ends = seed_interval(LOW[:3], HIGH[:3])
    assert ends is not None
    assert cell.interval == pytest.approx([1000 * end for end in ends])


def test_rows_are_compared_on_the_seeds_that_both_have(plan: Plan) -> None:
    """One seed that is LightGCN's first one to the last digit: no change, although LightGCN's mean is another."""
    base, _ = recorded_rows(plan, 5)
    assert np.mean(LOW) != pytest.approx(LOW[0], rel=1e-3)
    (first, *_) = sorted(runs_of(plan, "ips"), key=lambda run: run.seed)
    write_record(plan, first, LOW[0])
    cell = cell_of(seeds_of(plan, "ips"), base, "recall@20")
    assert isinstance(cell, Cell)
    assert (cell.mean, cell.seeds, cell.change) == (LOW[0], 1, 0.0)


def made_up(plan: Plan, values: Mapping[int, float | None], key: str = "recall@20") -> Seeds:
    """Seed -> value of a finished run of CAGED."""
    (run, *_) = runs_of(plan, "caged")
    finished = [
        Recorded(replace(run, seed=seed), plan.results / f"seed{seed}.json", "finished", {"metrics": {key: value}})
        for seed, value in values.items()
    ]
    return Seeds(tuple(finished))


def test_rows_are_tested_on_the_seeds_that_both_have(plan: Plan) -> None:
    base = made_up(plan, {0: 0.9, **dict(enumerate(LOW, 1))})
    row = made_up(plan, dict(enumerate(HIGH, 1)))
    found = outcome_of(row, base, "recall@20")
    assert found is not None
    assert found.p == pytest.approx(welch_test(LOW, HIGH).p)
    assert found.difference == pytest.approx(np.mean(HIGH) - np.mean(LOW))


def test_a_test_over_seeds_needs_enough_of_them_in_both(plan: Plan) -> None:
    """Rows without a common seed are compared as they are: the smaller one decides."""
    few, many = made_up(plan, dict(enumerate(HIGH[:4], 11))), made_up(plan, dict(enumerate(LOW, 1)))
    assert outcome_of(few, many, "recall@20") is None
    assert outcome_of(many, few, "recall@20") is None
    assert outcome_of(made_up(plan, dict(enumerate(HIGH, 11))), many, "recall@20") is not None


def test_a_metric_that_some_seeds_lack_is_a_gap_and_makes_no_change(plan: Plan) -> None:
    whole = made_up(plan, dict(enumerate(LOW, 1)))
    partly = made_up(plan, {**dict(enumerate(HIGH, 1)), 3: None})
    assert cell_of(partly, whole, "recall@20") == Gap("not measured")
    cell = cell_of(whole, partly, "recall@20")
    assert isinstance(cell, Cell)
    assert (cell.seeds, cell.change, cell.interval) == (5, None, None)
    assert outcome_of(partly, whole, "recall@20") is None
    assert outcome_of(whole, partly, "recall@20") is None
    without = made_up(plan, {seed: value for seed, value in enumerate(LOW, 1) if seed != 3})
    compared = cell_of(without, partly, "recall@20")  # the seeds that both have all have it
    assert isinstance(compared, Cell)
    assert compared.change is not None


def test_rows_without_a_common_seed_are_compared_by_their_means(plan: Plan) -> None:
    for row, seed, value in (("lightgcn", 1, 0.1), ("caged", 2, 0.11)):
        (run,) = (run for run in runs_of(plan, row) if run.seed == seed)
        write_record(plan, run, value)
    cell = cell_of(seeds_of(plan, "caged"), seeds_of(plan, "lightgcn"), "recall@20")
    assert isinstance(cell, Cell)
    assert cell.change == pytest.approx(10.0)


def test_a_record_that_lost_its_users_is_tested_over_none(plan: Plan) -> None:
    base, caged = recorded_rows(plan, 1, users=[0.1, 0.2, 0.3])
    assert outcome_of(caged, base, "recall@20") is not None
    users_file(caged.finished[0].path).unlink()
    assert outcome_of(caged, base, "recall@20") is None
    assert has_lost_users(caged.finished[0])
    assert not has_lost_users(base.finished[0])


def test_two_seeds_have_a_mean_and_no_interval(plan: Plan) -> None:
    base, caged = recorded_rows(plan, 2)
    cell = cell_of(caged, base, "recall@20")
    assert isinstance(cell, Cell)
    assert (cell.seeds, cell.half, cell.interval) == (2, None, None)
    assert outcome_of(caged, base, "recall@20") is None  # nothing per user, and not enough seeds


def test_five_seeds_are_tested_over_seeds(plan: Plan) -> None:
    base, caged = recorded_rows(plan, 5, users=[0.1, 0.2, 0.3])
    found = outcome_of(caged, base, "recall@20")
    assert found is not None
    assert found.over == "seeds"
    assert found.p == pytest.approx(welch_test(LOW, HIGH).p)


def test_fewer_seeds_are_tested_over_the_users_of_the_seeds_that_both_have(plan: Plan) -> None:
    rng = np.random.default_rng(0)
    values = {seed: (rng.random(40), rng.random(40)) for seed in (1, 2, 3)}
    for place, row in enumerate(("lightgcn", "caged")):
        for run in runs_of(plan, row):
            if run.seed in values and (row, run.seed) != ("lightgcn", 3):
                write_record(plan, run, 0.1, users=values[run.seed][place].tolist())
    found = outcome_of(seeds_of(plan, "caged"), seeds_of(plan, "lightgcn"), "recall@20/niche")
    expected = paired_test(*(np.mean([values[seed][side] for seed in (1, 2)], axis=0) for side in (0, 1)))
    assert found is not None
    assert found.over == "users"
    assert found.p == pytest.approx(expected.p_t, rel=1e-4)
    assert found.difference == pytest.approx(expected.mean_difference, abs=1e-6)


def test_other_users_are_refused(plan: Plan) -> None:
    for row, ids in (("lightgcn", "ours"), ("caged", "theirs")):
        write_record(plan, runs_of(plan, row)[0], 0.1, users=[0.1, 0.2], ids=ids)
    with pytest.raises(RunError, match="are about different users"):
        outcome_of(seeds_of(plan, "caged"), seeds_of(plan, "lightgcn"), "recall@20")


def test_gaps_say_why(plan: Plan) -> None:
    assert cell_of(Seeds(()), None, "recall@20") == Gap("not planned")
    assert cell_of(seeds_of(plan, "caged"), None, "recall@20") == Gap("not run")
    write_record(plan, runs_of(plan, "caged")[0], None, status="failed")
    assert cell_of(seeds_of(plan, "caged"), None, "recall@20") == Gap("failed")
    write_record(plan, runs_of(plan, "caged")[0], 0.1)
    assert cell_of(seeds_of(plan, "caged"), None, "map@20") == Gap("not measured")


def test_a_record_of_another_run_is_not_counted(plan: Plan) -> None:
    (run, *_) = runs_of(plan, "caged")
    one = Recorded(run, plan.results / "x.json", "other", {"per_user": {"ids": "a", "sha256": "b"}}, "it is another")
    assert cell_of(Seeds((one,)), None, "recall@20") == Gap("not counted")
    assert not has_lost_users(one)


def test_minutes_of_other_runs_than_planned_do_not_count(plan: Plan) -> None:
    first, second = runs_of(plan, "lightgcn")[:2]
    write_record(plan, first, 0.1)
    write_record(plan, second, 0.1)
    found = records_of(plan)
    other = replace(found[second], state="other")
    assert gpu_minutes([found[first], other]) == pytest.approx(1.5)


def test_minutes_count_what_ran_on_a_gpu_failed_runs_included(plan: Plan) -> None:
    first, second, third = runs_of(plan, "lightgcn")[:3]
    write_record(plan, first, 0.1)
    write_record(plan, second, None, status="failed")
    write_record(plan, third, 0.1, hardware={"device": "cpu"})
    assert gpu_minutes(list(records_of(plan).values())) == pytest.approx(3.0)


def test_runs_side_by_side_share_the_minutes_of_the_gpu(plan: Plan) -> None:
    together = {"device": "cuda", "gpu": "NVIDIA H200", "side_by_side": 3}
    for run in runs_of(plan, "lightgcn")[:3]:
        write_record(plan, run, 0.1, hardware=together)
    assert gpu_minutes(list(records_of(plan).values())) == pytest.approx(1.5)
