"""Every option does something: changing it changes a tensor or a file."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer.main
from safetensors.numpy import load_file

from caged.cli.main import app
from caged.models import METHODS
from caged.runs.execute import start
from caged.runs.spec import DataConfig, EvalConfig, resolve
from caged.training import TrainConfig
from tests.cli.invoke import caged, train
from tests.conftest import Pair

BASE = ("--min-rating", "3", "--set", "train.epochs=4", "--set", "train.learning_rate=0.01", "--no-report")


@pytest.fixture(scope="module")
def rated_csv(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets of columns; each pair twice, rated low and high, so that the time decides which rating holds."""
    rows = ["user_id,item_id,rating,timestamp,visitor,product,stars,seen,source"]
    for number, (user, item) in enumerate(pairs):
        visitor, product = f"v{user[1:]}", f"p{int(item[1:]) * 7 % 40:02d}"
        stars = 5 if number % 3 else 2
        first, second = (1, 2) if number % 5 else (2, 1)
        source = "explore" if number % 2 else "shop"
        rows.append(f"{user},{item},1,1,{visitor},{product},{stars},{first},{source}")
        rating = 5 if number % 7 else 4
        rows.append(f"{user},{item},{rating},2,{visitor},{product},{stars},{second},{source}")
    path = tmp_path_factory.mktemp("rated") / "log.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def observed(run: Path) -> dict[str, Any]:
    """What a run left behind, less times and what merely repeats the command."""
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    model = load_file(run / "checkpoint" / "model.safetensors")
    data = load_file(run / "checkpoint" / "training_data.safetensors")
    lists = pq.read_table(run / "recommendations.parquet")
    return {
        "model": {name: (value.shape, value.tobytes()) for name, value in model.items()},
        "data": {name: value.tobytes() for name, value in data.items()},
        "users": sorted(set(lists["user_id"].to_pylist())),
        "lists": lists.select(["user_id", "item_id", "rank"]).to_pylist(),
        "history": [[line["loss"], line["validation"]] for line in history],
        "metrics": json.loads((run / "metrics.json").read_text())["metrics"],
    }


@pytest.fixture(scope="module")
def base(rated_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run = tmp_path_factory.mktemp("base") / "run"
    train(rated_csv, run, *BASE)
    return observed(run)


# On CPU these are refused or without effect; tests/training/test_step.py and tests/graph try them on a GPU.
CUDA_ONLY = {"train.backend": "dense", "train.precision": "bf16", "train.capture": "false"}

# These change nothing on the log below; where their effect is tested.
OF_OTHER_DATA = {
    "data.ids": "test_train.test_ids_as_text_are_recorded_and_used_again",
    "data.catalogue": "test_protocols_leak.test_with_catalogue_train_new_names_in_test_change_no_model",
    "eval.shown_k": "test_shown.test_a_run_may_be_judged_on_one_half_from_the_start",
    "eval.shown_half": "test_shown.test_a_run_may_be_judged_on_one_half_from_the_start",
}

# option -> a value, and the first thing that it must change
OPTIONS = {
    "data.user_column": ("visitor", "users"),
    "data.item_column": ("product", "lists"),
    "data.rating_column": ("stars", "data"),
    "data.timestamp_column": ("seen", "data"),
    "data.min_rating": ("4.5", "data"),
    "data.split": ("leave_last_out", "data"),
    "data.k_core": ("9", "data"),
    "data.split_seed": ("2", "data"),
    "data.validate_on": ("source=explore", "data"),
    "method.embedding_size": ("5", "model"),
    "method.layers": ("1", "model"),
    "method.l2": ("0.5", "model"),
    "method.layer_scale": ("2", "model"),
    "method.table_init": ("xavier", "model"),
    "method.loss": ("softmax", "model"),
    "train.learning_rate": ("0.02", "model"),
    "train.batch_size": ("64", "model"),
    "train.epochs": ("3", "history"),
    "train.patience": ("1", "history"),
    "train.validation": ("no", "history"),
    "train.refit": ("true", "model"),
    "train.validate_every": ("2", "history"),
    "train.validation_users": ("4", "history"),
    "train.sampler": ("user_uniform", "model"),
    "train.negatives": ("replayed", "model"),
    "eval.k": ("5", "metrics"),
    "eval.list_length": ("7", "lists"),
    "eval.popular_share": ("0.4", "metrics"),
}


# Options of a loss that is not the default; refused with the default one.
OF_SOFTMAX = {
    "method.temperature": "0.3",
    "method.gamma": "0.5",
    "method.candidates": "uniform",
    "method.candidate_rows": "16",
    "method.known": "mask",
    "method.item_lengths": "0.5",
}
WITH_SOFTMAX = (*BASE, "--set", "method.loss=softmax", "--set", "method.gamma=0")


@pytest.fixture(scope="module")
def softmax_base(rated_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run = tmp_path_factory.mktemp("softmax") / "run"
    train(rated_csv, run, *WITH_SOFTMAX)
    return observed(run)


@pytest.mark.parametrize("option", OF_SOFTMAX)
def test_each_option_of_softmax_changes_the_model(
    option: str, rated_csv: Path, softmax_base: dict[str, Any], tmp_path: Path
) -> None:
    train(rated_csv, tmp_path / "run", *WITH_SOFTMAX, "--set", f"{option}={OF_SOFTMAX[option]}")
    assert observed(tmp_path / "run")["model"] != softmax_base["model"]
    given = ("--method", "lightgcn", "--out", tmp_path / "bpr", "--set", f"{option}={OF_SOFTMAX[option]}")
    refused = caged("train", "--data", rated_csv, *given)
    assert refused.code == 2
    assert "method.loss is bpr" in refused.error


@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_changes_a_tensor_or_a_file(
    option: str, rated_csv: Path, base: dict[str, Any], tmp_path: Path
) -> None:
    value, changed = OPTIONS[option]
    train(rated_csv, tmp_path / "run", *BASE, "--set", f"{option}={value}")
    section, _, key = option.partition(".")
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["spec"]["config"][section][key]
    assert str(stored).lower().strip("[]") in {value, f"{value}.0"}
    assert observed(tmp_path / "run")[changed] != base[changed]


def test_the_same_options_change_nothing(rated_csv: Path, base: dict[str, Any], tmp_path: Path) -> None:
    train(rated_csv, tmp_path / "run", *BASE)
    assert observed(tmp_path / "run") == base


@pytest.mark.parametrize(("seconds", "seen"), [(0, [0, 1, 1]), (1000, [0, 0, 0])])
def test_checkpoint_seconds(seconds: int, seen: list[int], log_csv: Path, tmp_path: Path) -> None:
    states = []

    class Watch:
        def epoch(self, record: dict[str, Any]) -> None:
            states.append(len(list((tmp_path / "run" / "checkpoint").glob("state-*.safetensors"))))

    overrides = ("train.epochs=3", "method.embedding_size=4", f"train.checkpoint_seconds={seconds}")
    start(resolve(str(log_csv), "lightgcn", overrides=overrides, device="cpu"), tmp_path / "run", observers=(Watch(),))
    assert states == seen


def test_no_option_is_left_out() -> None:
    configs = {"data": DataConfig, "train": TrainConfig, "eval": EvalConfig, "method": METHODS["lightgcn"].config}
    known = {f"{section}.{field.name}" for section, config in configs.items() for field in dataclasses.fields(config)}
    assert known == {*OPTIONS, *OF_SOFTMAX, *CUDA_ONLY, *OF_OTHER_DATA, "train.checkpoint_seconds"}


# ---------------------------------------------------------------- flags

# flag of train -> how it is given, and the option that it stands for
SHORTHANDS = {
    "--user-column": ("visitor", "data.user_column"),
    "--item-column": ("product", "data.item_column"),
    "--rating-column": ("stars", "data.rating_column"),
    "--timestamp-column": ("seen", "data.timestamp_column"),
    "--min-rating": ("4.5", "data.min_rating"),
    "--k-core": ("3", "data.k_core"),
    "--validate-on": ("source=explore", "data.validate_on"),
}
# Where the effect of the remaining flags is tested; `--set` is tested by everything above.
ELSEWHERE = {
    "--data": "test_options.test_other_data_gives_another_run",
    "--method": "test_train.test_exactly_these_files",
    "--preset": "test_options.test_presets_in_order_then_protocol_then_set",
    "--set": "test_options.test_each_option_changes_a_tensor_or_a_file",
    "--protocol": "test_train.test_paper_warns_and_labels_everything",
    "--seed": "test_train.test_equal_runs_are_equal_and_another_seed_is_not",
    "--device": "test_options.test_device_and_threads_are_kept",
    "--devices": "test_ranks.test_a_killed_rank_ends_the_run_which_goes_on_alone",
    "--threads": "test_options.test_device_and_threads_are_kept",
    "--out": "test_train.test_the_default_folder_is_named_after_data_method_and_seed",
    "--resume": "test_resume.test_killed_before_the_first_checkpoint_and_in_either_training_of_a_refit",
    "--init": "test_initial.test_it_starts_from_the_tables_of_the_run",
    "--record": "test_train.test_a_record_is_run_and_metrics_without_this_machine",
    "--variant": "test_train.test_a_record_is_run_and_metrics_without_this_machine",
    "--ids": OF_OTHER_DATA["data.ids"],
    "--catalogue": OF_OTHER_DATA["data.catalogue"],
    "--no-validation": "test_validation.test_lightgcn_without_validation_runs_all_epochs_on_everything",
    "--refit": "test_train.test_it_is_the_training_without_validation_of_as_many_epochs",
    "--save-weights": "test_plot.test_weights_before_during_and_after",
    "--no-report": "test_audit.test_the_numbers_of_a_run_are_those_of_its_audit",
    "--json": "test_train.test_json_output_is_what_the_folder_holds",
    "--verbose": "test_bad_input.test_verbose_adds_the_traceback",
}


@pytest.mark.parametrize("flag", SHORTHANDS)
def test_flags_that_stand_for_an_option(flag: str, rated_csv: Path, tmp_path: Path) -> None:
    value, option = SHORTHANDS[flag]
    train(rated_csv, tmp_path / "flag", *BASE, flag, value)
    train(rated_csv, tmp_path / "set", *BASE, "--set", f"{option}={value}")
    assert observed(tmp_path / "flag") == observed(tmp_path / "set")


def test_no_flag_is_left_out() -> None:
    command = typer.main.get_command(app).load("train")  # type: ignore[attr-defined]
    flags = {max(parameter.opts, key=len) for parameter in command.params}
    assert flags - {"--help"} == {*SHORTHANDS, *ELSEWHERE}


def test_what_is_tested_elsewhere_is_there() -> None:
    tests = {
        f"{path.stem}.{name}"
        for path in Path(__file__).parents[1].rglob("test_*.py")
        for name in re.findall(r"^(?:    )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {*ELSEWHERE.values(), *OF_OTHER_DATA.values()} - tests == set()


def test_other_data_gives_another_run(log_csv: Path, rated_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "one", method="mostpop")
    train(rated_csv, tmp_path / "other", "--user-column", "visitor", method="mostpop")
    assert observed(tmp_path / "one")["users"] != observed(tmp_path / "other")["users"]


@pytest.mark.parametrize(("preset", "told"), [("advdrop_rescaled", True), ("movie", False)])
def test_a_preset_without_a_word_for_the_method_is_told(
    preset: str, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    resolve("log.csv", "lightgcn", presets=[preset])
    assert caplog.messages == [f"preset '{preset}' sets nothing for lightgcn: it changes nothing here"] * told


def test_presets_in_order_then_protocol_then_set(released: Path, tmp_path: Path) -> None:
    """Later presets win over earlier ones, the protocol over presets, --set over everything."""
    (tmp_path / "mine.toml").write_text(
        "[train]\nsampler = 'interaction'\nbatch_size = 64\n[methods.lightgcn]\nl2 = 0.25\n"
    )
    presets = ("--preset", "movie", "--preset", str(tmp_path / "mine.toml"))
    values = ("--set", "train.epochs=2", "--set", "method.embedding_size=4")
    for protocol in ("honest", "paper"):
        arguments = ["--data", released, "--method", "lightgcn", "--protocol", protocol, *presets, *values]
        assert caged("train", *arguments, "--out", tmp_path / protocol).code == 0
    spec = {
        protocol: json.loads((tmp_path / protocol / "run.json").read_text())["spec"] for protocol in ("honest", "paper")
    }
    for stored in spec.values():
        assert stored["presets"] == ["movie", str(tmp_path / "mine.toml")]
        assert stored["config"]["train"]["learning_rate"] == 5e-4  # movie
        assert stored["config"]["train"]["batch_size"] == 64  # mine, over movie
        assert stored["config"]["method"]["l2"] == 0.25  # mine, over movie
        assert stored["config"]["method"]["embedding_size"] == 4  # --set, over movie
    assert spec["paper"]["config"]["train"]["sampler"] == "user_equal"  # the protocol, over mine
    assert spec["honest"]["config"]["train"]["sampler"] == "interaction"


def test_device_and_threads_are_kept(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", "--device", "cpu", "--threads", "2", method="mostpop")
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (run["spec"]["device"], run["hardware"]["device"]) == ("cpu", "cpu")
    assert (run["spec"]["threads"], run["threads"]) == (2, 2)


@pytest.mark.parametrize("option", ["train.backend", "train.precision"])
def test_what_the_cpu_cannot_do_is_refused(rated_csv: Path, tmp_path: Path, option: str) -> None:
    value = CUDA_ONLY[option]
    out = tmp_path / "run"
    command = ["train", "--data", str(rated_csv), "--method", "lightgcn", "--device", "cpu"]
    result = caged(*command, "--out", str(out), "--set", f"{option}={value}")
    assert result.code == 2
    assert f"is {value}" in result.error
    assert not out.exists()
