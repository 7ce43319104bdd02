"""Studies from end to end: no decision rests on the test part, and the plan that shows the whole path."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from caged.products.study import PlannedRun, chosen, read_plan
from caged.products.study.commands import Places, command
from caged.training.checkpoint import load_tensors
from tests.cli.invoke import caged
from tests.conftest import write_log

ROOT = Path(__file__).parents[2]
PLAN = """
[datasets.shop]
data = "shop"
set = ["train.epochs=4", "train.patience=2", "train.batch_size=128", "train.learning_rate=0.02"]
device = "cpu"
threads = 1

[rows.lightgcn]
method = "lightgcn"
set = ["method.embedding_size=4"]

[rows.caged]
method = "caged"
set = ["method.embedding_size=4", "method.eps=0.1"]

[rows.softmax]
method = "softmax"
set = ["method.embedding_size=4"]
vary = { key = "method.gamma", values = [0, 0.5] }

[rows.macr]
method = "macr"
set = ["method.embedding_size=4"]

[rows.galore]
method = "galore"
set = ["method.embedding_size=4", "method.finetune_epochs=3"]
init = "lightgcn"

[rows.refitted]
method = "lightgcn"
variant = "refitted"
set = ["method.embedding_size=4", "train.refit=true"]

[rows.ease]
method = "ease"
plain = true

[rows.adjusted]
adjust = "lightgcn"
keep = "80%"

[sections.all]

[[sections.all.grids]]
datasets = ["shop"]
protocols = ["honest"]
rows = ["lightgcn", "caged", "softmax", "macr", "galore", "refitted", "ease", "adjusted"]
"""


def parts(folder: Path, *, noise: bool) -> None:
    """Train, validation and test of a shop, whose test part is either what people took or drawn blindly.

    The catalogue is that of train, so that both know the same users and items.
    """
    generator = np.random.default_rng(3)
    weights = 1.0 / np.arange(1, 41) ** 0.8
    made: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
    blind = np.random.default_rng(4)
    for user in range(50):
        items = list(generator.choice(40, 14, replace=False, p=weights / weights.sum()))
        tests = list(blind.choice([item for item in range(40) if item not in items[:11]], 3, replace=False))
        for part, taken in (("train", items[:9]), ("valid", items[9:11]), ("test", tests if noise else items[11:])):
            made[part] += [(f"u{user:02d}", f"i{item:02d}") for item in taken]
    made["train"] += [("u50", f"i{item:02d}") for item in range(40)]  # somebody who takes everything
    for part, pairs in made.items():
        write_log(folder / f"{part}.csv", pairs)


def decisions(folder: Path, records: Path, run: PlannedRun) -> dict[str, object]:
    """All that a run decided: epochs, what validation said, its strength, and the model itself."""
    content = json.loads((folder / "run.json").read_text())
    record = json.loads((records / run.place).read_text())
    adjustment = content.get("adjustment") or {}
    manifest = json.loads((folder / "checkpoint" / "checkpoint.json").read_text())
    tensors = load_tensors(folder / "checkpoint" / manifest["tensors"])
    return {
        "training": content.get("training"),
        "history": record.get("history"),
        "adjustment": {key: adjustment.get(key) for key in ("strength", "tried")},
        "model": {name: value.numpy().tobytes() for name, value in tensors.items()},
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[Path, list[PlannedRun]]]:
    """The same study twice, with the test part and with noise in its place."""
    found = {}
    for noise in (False, True):
        folder = tmp_path_factory.mktemp("noise" if noise else "test")
        parts(folder / "shop", noise=noise)
        (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
        runs = chosen(read_plan(folder / "plan.toml"))
        for run in runs:
            outcome = caged(*command(run, Places(Path("results"), Path("runs"))), cwd=folder)
            assert outcome.code == 0, outcome.err
        found[noise] = folder, runs
    return found


def test_noise_in_place_of_the_test_part_changes_no_decision(made: dict[bool, tuple[Path, list[PlannedRun]]]) -> None:
    (true_folder, true_runs), (blind_folder, blind_runs) = made[False], made[True]
    assert [run.name for run in true_runs] == [run.name for run in blind_runs]
    reported = []
    for run in true_runs:
        of_test, of_noise = (
            decisions(folder / "runs" / run.name, folder / "results", run) for folder in (true_folder, blind_folder)
        )
        assert of_test == of_noise, run.name
        values = [
            json.loads((folder / "results" / run.place).read_text())["metrics"]
            for folder in (true_folder, blind_folder)
        ]
        reported.append(values[0]["recall@20"] != values[1]["recall@20"])
    assert all(reported)  # the noise was there: what is reported differs


def test_what_is_to_be_run_next_does_not_rest_on_the_test_part(
    made: dict[bool, tuple[Path, list[PlannedRun]]],
) -> None:
    """The same runs count as made, and the same are left where one of them is gone."""
    left = []
    for folder, runs in made.values():
        (folder / "results" / runs[1].place).unlink(missing_ok=True)
        status = json.loads(caged("study", "status", "plan.toml", "--json", cwd=folder).out)
        left.append([status["recorded"], [(task["run"], task["action"]) for task in status["to_run"]]])
    assert left[0] == left[1]
    assert len(left[0][0]) == len(made[False][1]) - 1


def test_the_smoke_plan_runs_to_its_end(tmp_path: Path) -> None:
    """In at most two minutes on two cores that nothing else uses."""
    plan = ROOT / "studies" / "smoke.toml"
    places = ("--record", tmp_path / "results", "--runs", tmp_path / "runs")
    outcome = caged("study", "run", plan, *places, "--workers", "2")
    assert outcome.code == 0, outcome
    status = json.loads(caged("study", "status", plan, *places, "--json").out)
    assert (status["to_run"], len(status["recorded"])) == ([], len(read_plan(plan).runs))
    tables = caged("study", "tables", plan, *places[:2])
    assert tables.code == 0, tables.err
    assert "CAGED control: constant" in tables.out
    figures = caged("study", "figures", plan, *places[:2], "-o", tmp_path / "figures")
    assert figures.code == 0, figures.err
    assert {path.name.partition("-")[0] for path in (tmp_path / "figures").iterdir()} >= {"lambda", "densities"}
