"""`caged study`."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from caged.cli.progress import StopOnCtrlC
from caged.signals import ENDED_BY
from tests.cli.invoke import caged, contents, refused_without_a_trace

PLAN = """
title = "two runs"

[datasets.shop]
simulate = { seed = 1, user_count = 60, item_count = 50, rounds = 10, test_rounds = 4 }
set = ["train.epochs=2", "train.batch_size=256"]

[rows.lightgcn]
method = "lightgcn"
set = ["method.embedding_size=4"]

[rows.adjusted]
adjust = "lightgcn"

[sections.main]
about = "Both."

[[sections.main.grids]]
datasets = ["shop"]
protocols = ["honest"]
rows = ["lightgcn", "adjusted"]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    return path


def test_what_would_be_run_is_shown_and_nothing_is_written(plan: Path) -> None:
    before = contents(plan.parent)
    outcome = caged("study", "run", "plan.toml", "--dry-run", cwd=plan.parent)
    assert outcome.code == 0, outcome.err
    assert "2 runs to come on cpu, time: unknown. 0 of 2 are recorded in results." in outcome.out
    assert contents(plan.parent) == before
    assert "main" in caged("study", "status", "plan.toml", cwd=plan.parent).out
    found = json.loads(caged("study", "status", "plan.toml", "--json", cwd=plan.parent).out)
    assert [run["run"] for run in found["to_run"]] == ["shop-honest-lightgcn-1", "shop-honest-adjusted-1"]


def test_a_study_runs_is_recorded_and_is_not_run_again(plan: Path) -> None:
    outcome = caged("study", "run", "plan.toml", "--device", "cpu", cwd=plan.parent)
    assert outcome.code == 0, outcome
    assert "Of the runs, 2 finished." in outcome.out
    record = plan.parent / "results" / "shop" / "honest" / "lightgcn-adjusted" / "seed1.json"
    assert json.loads(record.read_text())["adjustment"]["form"] == "degree"
    again = caged("study", "run", "plan.toml", "--json", cwd=plan.parent)
    found = json.loads(again.out)
    assert (found["to_run"], len(found["recorded"]), found["outcome"]) == ([], 2, None)
    record.unlink()  # the folder is still there: nothing has to be computed
    assert json.loads(caged("study", "status", "plan.toml", "--json", cwd=plan.parent).out)["to_run"][0]["action"] == (
        "record"
    )
    outcome = caged("study", "run", "plan.toml", cwd=plan.parent)
    assert outcome.code == 0, outcome
    assert record.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "no.toml"], "cannot read plan no.toml: No such file"),
        (["run", "plan.toml", "--budget", "soon"], "write a time such as 30s, 9m or 1.5h"),
        (["run", "plan.toml", "--workers", "0"], "--workers is 0"),
        (["run", "plan.toml", "--seeds", "0"], "--seeds is 0"),
        (["run", "plan.toml", "--seeds", "some"], "'some'"),
        (["run", "plan.toml", "--workers=1.5"], "'1.5'"),
        (["status", "plan.toml", "--only", "shop,lightgnc"], "did you mean 'lightgcn'"),
        (["run", "plan.toml", "--device", "gpu"], "unknown device 'gpu'"),
        (["tables", "plan.toml", "--only", " , "], "--only names nothing"),
        (["run", "plan.toml", "--record", "plan.toml"], "--record plan.toml is a file"),
        (["run", "plan.toml", "--runs", "plan.toml/runs"], "--runs plan.toml/runs lies below"),
    ],
)
def test_bad_input_is_one_sentence(plan: Path, arguments: list[str], said: str) -> None:
    refused_without_a_trace(plan.parent, ["study", *arguments], said)


def test_a_plan_with_a_setting_that_no_method_has_is_refused(plan: Path) -> None:
    plan.write_text(PLAN.replace("method.embedding_size=4", "method.embeding_size=4"), encoding="utf-8")
    refused_without_a_trace(plan.parent, ["study", "status", "plan.toml"], "row 'lightgcn' on dataset 'shop'")


def test_a_study_of_which_nothing_can_be_run_fails(plan: Path) -> None:
    """Whoever calls it in a script must notice."""
    plan.write_text(
        PLAN.replace(PLAN[PLAN.index("simulate") : PLAN.index("\nset")], 'data = "ml-100"'), encoding="utf-8"
    )
    outcome = caged("study", "run", "plan.toml", cwd=plan.parent)
    assert outcome.code == 1
    assert "its data, ml-100, is not here; did you mean 'ml-100k'?; give the name of a dataset" in outcome.out
    assert caged("study", "run", "plan.toml", "--dry-run", cwd=plan.parent).code == 0


def test_a_study_hears_what_ends_a_run(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes must not outlive it, nor a terminal that is closed."""
    heard: list[tuple[signal.Signals, ...]] = []

    def listening(*also: signal.Signals) -> StopOnCtrlC:
        heard.append(also)
        return StopOnCtrlC(*also)

    monkeypatch.setattr("caged.cli.study.StopOnCtrlC", listening)
    assert caged("study", "run", "plan.toml", "--only", "lightgcn", "--device", "cpu", cwd=plan.parent).code == 0
    assert heard == [tuple(ENDED_BY)]


def test_a_log_with_other_columns_is_told_how_a_plan_names_them(plan: Path) -> None:
    (plan.parent / "log.csv").write_text("who,item_id\n" + "".join(f"u{n},i{m}\n" for n in range(9) for m in range(6)))
    plan.write_text(
        PLAN.replace(PLAN[PLAN.index("simulate") : PLAN.index("\nset")], 'data = "log.csv"'), encoding="utf-8"
    )
    outcome = caged("study", "run", "plan.toml", "--device", "cpu", cwd=plan.parent)
    assert outcome.code == 1
    assert '(in a plan: set = ["data.user_column=NAME"])' in outcome.err
