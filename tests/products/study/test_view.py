from __future__ import annotations

from pathlib import Path

import pytest

from caged.products.study import (
    make_study,
    outcome_json,
    outcome_sentences,
    schedule_json,
    schedule_sentences,
    schedule_tables,
    status_tables,
)
from caged.products.study.estimate import Estimate
from caged.products.study.runner import Outcome
from caged.products.study.schedule import Task
from tests.products.study.test_schedule import TEXT, World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, TEXT)


def study_of(world, *only, **options):
    return make_study(world.plan, results=world.places.results, runs=world.places.runs, only=only, **options)


def test_seeds_of_a_row_are_one_line(world):
    world.record("second-honest-ease-1", dataset={"name": "second", "interactions": {"train": 9}})
    study = study_of(world, "ease", "second", device="cpu")
    (table,) = schedule_tables(study.schedule)
    assert list(map(list, table.rows)) == [
        ["second", "honest", "ease", "2, 3", "8 s", "unknown", "recorded"],
    ]
    assert schedule_sentences(study)[0] == (
        f"2 runs to come on cpu, time: about 17 s. 1 of 3 are recorded in {world.places.results}."
    )


def test_what_cannot_be_estimated_is_unknown(world):
    study = study_of(world, "wide")
    assert "time: unknown." in schedule_sentences(study)[0]
    study.schedule.tasks.append(Task(study.runs[0], "start", Estimate(60.0)))
    assert "about 60 s for those that can be estimated, 1 cannot" in schedule_sentences(study)[0]


def test_memory_on_the_gpu_has_a_column_where_it_is_known(world):
    schedule = study_of(world, "wide").schedule
    assert "on the GPU" not in schedule_tables(schedule)[0].headers
    schedule.tasks[0] = Task(schedule.tasks[0].run, "start", Estimate(60.0, 1.5, 2.25))
    (table,) = schedule_tables(schedule)
    assert list(table.rows[0][-4:-1]) == ["60 s", "1.5 GiB", "2.2 GiB"]


def test_a_run_that_only_another_one_needs_is_marked(world):
    (table,) = schedule_tables(study_of(world, "galore").schedule)
    assert [row[-1] for row in table.rows] == ["unknown, another run needs it", "unknown"]


def test_everything_recorded_says_how_to_run_it_oneself(world):
    for name in world.runs:
        world.record(name)
    study = study_of(world)
    assert schedule_tables(study.schedule) == []
    of_all = f"{len(study.runs)} of {len(study.runs)}"
    assert schedule_sentences(study)[0].startswith(f"Nothing to run: {of_all} are recorded in ")
    assert schedule_sentences(study)[-1] == "To run them yourself, record them elsewhere: --record my-results."


def test_failures_and_obstacles_are_told_once_per_reason(world):
    for name in ("second-honest-ease-1", "second-honest-ease-2"):
        world.record(name, status="failed", error="memory ran out")
    world.record("second-honest-ease-3", init={"run": "x"})
    said = schedule_sentences(study_of(world, "second", "ease"))
    assert said[0].startswith("None of the missing runs can be run now: 0 of 3 are recorded in ")
    assert said[1] == ("second-honest-ease-1 and 1 more: failed before (--retry-failed tries again): memory ran out")
    assert said[2].startswith("second-honest-ease-3: cannot be run here: ")
    assert len(said) == 3


def test_status_counts_by_section(world):
    world.record("first-honest-wide-1")
    world.record("first-honest-scale-2-1", status="failed", error="x")
    (table,) = status_tables(study_of(world))
    assert table.rows[1][:5] == ["further", "6", "1", "1", "4"]
    assert [row[-2] for row in table.rows] == ["unknown", "unknown"]


def test_json_has_every_run(world):
    found = schedule_json(study_of(world, "galore"))
    assert [run["run"] for run in found["to_run"]] == ["first-honest-lightgcn-1", "first-honest-galore-1"]
    assert found["unknown"] == 2
    assert found["to_run"][1]["record"] == "first/honest/galore/seed1.json"


def test_what_became_of_the_runs(world):
    first, second = list(world.plan.runs)[:2]
    outcome = Outcome(finished=[first], failed={second: "no"}, too_long=[first])
    assert outcome_sentences(outcome) == [
        "Of the runs, 1 finished, 1 failed, 1 not begun, longer than the time that was left."
    ]
    assert outcome_json(outcome)["failed"] == {second.name: "no"}
    assert outcome_sentences(Outcome()) == []


def test_the_plan_says_where_its_records_are(world):
    assert make_study(world.plan, runs=Path("runs")).places.results == world.plan.path.parent / "results"
