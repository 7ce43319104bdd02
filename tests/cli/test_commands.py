"""`methods`, `evaluate`, `recommend`, `results`, and the help of every command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import typer.main

import caged as library
from caged.cli.lazy import LazyGroup
from caged.cli.main import app
from caged.config import describe, value_text
from caged.models import METHODS
from caged.training import TrainConfig
from tests.cli.invoke import caged, contents, train
from tests.conftest import Pair, write_log


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, listed in getattr(command, "commands", {}).items():
        child = command.load(name) if isinstance(command, LazyGroup) else listed
        yield from commands(child, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


# ---------------------------------------------------------------- help


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_teaches_every_option(path: tuple[str, ...]) -> None:
    outcome = caged(*path, "--help")
    assert outcome.code == 0
    assert outcome.err == ""
    for parameter in COMMANDS[path].params:
        if parameter.param_type_name == "option":
            assert max(parameter.opts, key=len) in outcome.out
            assert getattr(parameter, "help", None), f"{parameter.name} says nothing"
    for name in getattr(COMMANDS[path], "commands", {}):
        assert name in outcome.out


def test_the_commands_are_there() -> None:
    wanted = {"train", "evaluate", "recommend", "methods", "methods show", "results pack", "results unpack"}
    assert wanted <= {" ".join(path) for path in COMMANDS}


def test_version() -> None:
    assert caged("--version") == (0, f"caged {library.__version__}\n", "")


def test_no_command_shows_the_help() -> None:
    outcome = caged()
    assert outcome.code == 2
    assert "Usage: caged" in outcome.out + outcome.err
    assert "error:" not in outcome.err


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "caged", "methods", "show", "lightgcn"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(timeout=60)


# ---------------------------------------------------------------- methods


def test_methods_lists_every_method() -> None:
    outcome = caged("methods")
    assert (outcome.code, outcome.err) == (0, "")
    printed = json.loads(caged("methods", "--json").out)
    assert [method["name"] for method in printed] == list(METHODS)
    for name, known in METHODS.items():
        assert name in outcome.out
        assert known.title in outcome.out


@pytest.mark.parametrize("name", METHODS)
def test_show_prints_every_parameter(name: str) -> None:
    outcome = caged("methods", "show", name)
    assert (outcome.code, outcome.err) == (0, "")
    printed = json.loads(caged("methods", "show", name, "--json").out)
    assert printed["name"] == name
    assert [option["name"] for option in printed["method"]] == [info.name for info in describe(METHODS[name].config)]
    for info in describe(METHODS[name].config):
        [line] = [line for line in outcome.out.splitlines() if line.startswith(f"method.{info.name} ")]
        assert value_text(info.default) in line
        assert info.help in line
        assert info.source in line


def test_show_prints_the_presets_of_a_method() -> None:
    lines = caged("methods", "show", "advdrop").out.splitlines()
    assert [line.split()[1:] for line in lines if line.startswith("advdrop_rescaled ")] == [
        ["rescale=prob,", "min_keep=0.1,", "inv_tau=0.01,", "adv_steps=100"]
    ]
    assert any(line.startswith("yelp2018_ood ") for line in lines)
    assert not any(line.startswith("galore_code ") for line in lines)
    assert "--preset" not in caged("methods", "show", "ease").out


def test_show_prints_the_options_of_training_where_there_is_any() -> None:
    outcome = caged("methods", "show", "lightgcn")
    for info in describe(TrainConfig):
        [line] = [line for line in outcome.out.splitlines() if line.startswith(f"train.{info.name} ")]
        assert value_text(info.default) in line
        assert info.source in line
    assert "train." not in caged("methods", "show", "mostpop").out
    assert "train" not in json.loads(caged("methods", "show", "mostpop", "--json").out)


# ---------------------------------------------------------------- evaluate


def test_evaluating_again_gives_the_same_numbers(finished_run: Path) -> None:
    before = contents(finished_run)
    outcome = caged("evaluate", finished_run, "--json")
    printed = json.loads(outcome.out)
    stored = json.loads((finished_run / "metrics.json").read_text())
    assert (printed["protocol"], printed["part"]) == ("honest", "test")
    assert printed["metrics"] == stored["metrics"]
    assert printed["users"] == stored["users"]
    assert contents(finished_run) == before


def test_evaluate_at_other_lengths_and_on_the_other_part(finished_run: Path) -> None:
    outcome = caged("evaluate", finished_run, "-k", "5,10")
    assert "recall@5" in outcome.out
    assert "recall@10" in outcome.out
    assert "recall@20" not in outcome.out
    assert "lightgcn, protocol honest, test part" in outcome.out
    printed = json.loads(caged("evaluate", finished_run, "--part", "valid", "--json").out)
    best = json.loads((finished_run / "run.json").read_text())["training"]["best_validation"]
    assert printed["metrics"]["recall@20"] == best


def test_evaluate_validation_under_paper(released: Path, tmp_path: Path) -> None:
    train(released, tmp_path / "run", "--protocol", "paper", method="mostpop")
    outcome = caged("evaluate", tmp_path / "run", "--part", "valid")
    assert outcome.code == 2
    assert "no validation part; use --part test" in outcome.error


# ---------------------------------------------------------------- recommend


def rows(outcome_out: str) -> list[dict[str, Any]]:
    return list(json.loads(outcome_out))


def test_recommend_to_some_users(finished_run: Path, tmp_path: Path) -> None:
    expected = library.load(finished_run).recommend(["u03", "u11"], k=4).to_pylist()
    outcome = caged("recommend", finished_run, "--users", "u11, u03", "-k", "4", "--json")
    assert rows(outcome.out) == expected
    assert outcome.err == ""
    (tmp_path / "users.txt").write_text("u11\n\nu03\n")
    again = caged("recommend", finished_run, "--users-file", tmp_path / "users.txt", "-k", "4", "--json")
    assert again.out == outcome.out
    table = caged("recommend", finished_run, "--users", "u11,u03", "-k", "4").out.splitlines()
    assert table[0].split() == ["user_id", "rank", "item_id", "score"]
    assert [line.split()[:3] for line in table[1:]] == [
        [row["user_id"], str(row["rank"]), row["item_id"]] for row in expected
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_recommend_into_a_file(suffix: str, finished_run: Path, tmp_path: Path) -> None:
    path = tmp_path / f"recs{suffix}"
    outcome = caged("recommend", finished_run, "--all-users", "-k", "3", "-o", path)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"180 rows written to {path}\n"
    assert list(tmp_path.iterdir()) == [path]
    table = pq.read_table(path) if suffix == ".parquet" else pa_csv.read_csv(path)
    expected = library.load(finished_run).recommend(k=3)
    for name in ("user_id", "item_id", "rank"):
        assert table[name].to_pylist() == expected[name].to_pylist()
    assert table["score"].to_pylist() == pytest.approx(expected["score"].to_pylist(), abs=1e-6)


def test_unknown_users(finished_run: Path, pairs: list[Pair]) -> None:
    arguments = ("recommend", finished_run, "--users", "u01,zoe,adam", "-k", "5", "--json")
    assert caged(*arguments).code == 2
    skipped = rows(caged(*arguments, "--unknown", "skip").out)
    assert {row["user_id"] for row in skipped} == {"u01"}
    popular = rows(caged(*arguments, "--unknown", "popular").out)
    assert popular[:5] == skipped
    train = library.load(finished_run).artefact.train
    best = sorted(range(train.item_count), key=lambda item: (-train.item_degrees[item], item))[:5]
    for number, user in enumerate(["adam", "zoe"]):
        own = popular[5 + 5 * number : 10 + 5 * number]
        assert {row["user_id"] for row in own} == {user}
        assert [row["item_id"] for row in own] == train.item_ids.external(best).to_pylist()
        assert [row["score"] for row in own] == [float(train.item_degrees[item]) for item in best]
        assert [row["rank"] for row in own] == [1, 2, 3, 4, 5]


def test_unknown_users_where_ids_are_integers(pairs: list[Pair], tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [(str(int(user[1:])), str(int(item[1:]))) for user, item in pairs])
    train(log, tmp_path / "run", method="mostpop")
    arguments = ("recommend", tmp_path / "run", "-k", "2", "--json")
    assert [row["user_id"] for row in rows(caged(*arguments, "--users", "7,3").out)] == [3, 3, 7, 7]
    popular = rows(caged(*arguments, "--users", "7,900", "--unknown", "popular").out)
    assert [row["user_id"] for row in popular] == [7, 7, 900, 900]
    assert [row["user_id"] for row in rows(caged(*arguments, "--users", "7,zoe", "--unknown", "skip").out)] == [7, 7]
    mixed = caged(*arguments, "--users", "7,zoe", "--unknown", "popular")
    assert mixed.code == 2
    assert "another type" in mixed.error
    huge = caged(*arguments, "--users", "99999999999999999999")
    assert huge.code == 2
    assert "1 of the users asked for are unknown, e.g. '99999999999999999999'" in huge.error


# ---------------------------------------------------------------- results


def test_records_move_between_machines(log_csv: Path, tmp_path: Path) -> None:
    for seed in ("1", "2"):
        train(log_csv, tmp_path / f"run{seed}", "--seed", seed, "--record", tmp_path / "results", method="mostpop")
    outcome = caged("results", "pack", "results", "-o", "moved.tar.gz", cwd=tmp_path)
    assert outcome == (0, "", "2 records packed into moved.tar.gz\n")
    outcome = caged("results", "unpack", "moved.tar.gz", "--into", "copy", cwd=tmp_path)
    assert outcome == (0, "", "2 records unpacked into copy\n")
    assert contents(tmp_path / "copy") == contents(tmp_path / "results")
    [changed, _] = sorted((tmp_path / "copy").rglob("*.json"))
    changed.write_text("{}")
    refused = caged("results", "unpack", "moved.tar.gz", "--into", "copy", cwd=tmp_path)
    assert refused.code == 2
    assert "--overwrite" in refused.error
    assert changed.read_text() == "{}"
    assert caged("results", "unpack", "moved.tar.gz", "--into", "copy", "--overwrite", cwd=tmp_path).code == 0
    assert contents(tmp_path / "copy") == contents(tmp_path / "results")
    assert caged("results", "pack", "results", cwd=tmp_path).code == 0
    assert (tmp_path / "results.tar.gz").read_bytes() == (tmp_path / "moved.tar.gz").read_bytes()
