"""`caged train --refit`: validation decides, then everything is trained once more on train and validation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caged as library
from caged.errors import ConfigError
from caged.runs.folder import RunFolder
from tests.cli.invoke import caged, refused, tiny, train
from tests.conftest import Pair, write_log

EPOCHS = ("--set", "train.epochs=8", "--set", "train.batch_size=128", "--set", "method.embedding_size=4")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def refitted(log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refit") / "run"
    train(log_csv, folder, "--set", "train.epochs=8", "--refit")
    return folder


def test_it_is_the_training_without_validation_of_as_many_epochs(refitted: Path, log_csv: Path, tmp_path: Path) -> None:
    """Bit for bit, lists and metrics included."""
    decided = read(refitted / "run.json")["training"]["decisions"]
    [stage] = decided["stages"]
    train(log_csv, tmp_path / "told", "--no-validation", "--set", f"train.epochs={stage['epochs']}")
    for file in ("checkpoint/model.safetensors", "checkpoint/training_data.safetensors"):
        assert (refitted / file).read_bytes() == (tmp_path / "told" / file).read_bytes(), file
    metrics, told = read(refitted / "metrics.json"), read(tmp_path / "told" / "metrics.json")
    assert metrics.pop("refit") is True
    assert metrics.pop("checksum") != told.pop("checksum")  # of all that the file says, the label among it
    assert metrics == told


def test_what_was_decided_is_recorded_and_was_decided_by_a_plain_run(
    refitted: Path, log_csv: Path, tmp_path: Path
) -> None:
    train(log_csv, tmp_path / "plain", "--set", "train.epochs=8")
    plain, run = read(tmp_path / "plain" / "run.json")["training"], read(refitted / "run.json")["training"]
    whole = RunFolder.read(refitted).load_data("the run").split.development().whole().train
    assert run == {**plain, "refit": {"epochs": plain["best_epoch"], "interactions": len(whole)}}
    [stage] = run["decisions"]["stages"]
    history = lines(refitted / "history.jsonl")
    assert stage == {
        "stage": "train",
        "epochs": plain["best_epoch"],
        "improved": [line["epoch"] for line in history if line["improved"]],
    }
    again = lines(refitted / "history_refit.jsonl")
    assert [line["epoch"] for line in again] == list(range(1, stage["epochs"] + 1))
    assert [line["epoch"] for line in again if line["improved"]] == stage["improved"]
    assert {line["validation"] is None for line in again} == {True}


def test_it_is_labelled(refitted: Path, log_csv: Path, tmp_path: Path) -> None:
    outcome = caged("train", "--data", log_csv, "--method", "lightgcn", "--out", tmp_path / "run", "--refit")
    epochs = read(tmp_path / "run" / "run.json")["training"]["refit"]["epochs"]
    assert f"refitted for {epochs} epochs" in outcome.out
    assert "trained again, now including the" in outcome.err
    assert "nothing is chosen" not in outcome.err
    page = (tmp_path / "run" / "report.html").read_text()
    assert "LightGCN, refitted, on log" in page
    assert "trained anew, for as long, on train and validation together" in page
    assert read(refitted / "run.json")["spec"]["config"]["train"]["refit"] is True


def test_the_validation_part_says_nothing_about_it(refitted: Path) -> None:
    refused(caged("evaluate", refitted, "--part", "valid"), "was trained on the validation part too", "without --refit")
    again = json.loads(caged("evaluate", refitted, "--json").out)
    assert again["metrics"] == read(refitted / "metrics.json")["metrics"]


def test_the_test_part_decides_nothing(pairs: list[Pair], tmp_path: Path) -> None:
    """Noise in its place: the same decisions, the same model."""
    owned: dict[str, list[str]] = {}
    for user, item in pairs:
        owned.setdefault(user, []).append(item)
    items = sorted({item for _, item in pairs})
    generator = np.random.default_rng(0)
    for name in ("real", "noise"):
        folder = tmp_path / f"data-{name}"
        write_log(folder / "train.csv", [(user, item) for user, had in owned.items() for item in had[3:]])
        write_log(folder / "valid.csv", [(user, had[2]) for user, had in owned.items()])
        rows = [(user, item) for user, had in owned.items() for item in had[:2]]
        if name == "noise":
            free = {user: sorted(set(items) - set(had[2:])) for user, had in owned.items()}
            rows = [(user, item) for user in owned for item in generator.choice(free[user], 2, replace=False)]
        write_log(folder / "test.csv", rows)
        options = (*tiny("caged"), *EPOCHS, "--set", "method.eps=0.1", "--refit", "--no-report")
        outcome = caged("train", "--data", folder, "--method", "caged", "--out", tmp_path / name, *options)
        assert outcome.code == 0, outcome.err
    real, noise = tmp_path / "real", tmp_path / "noise"
    for file in ("model.safetensors", "checkpoint.json", "training_data.safetensors"):
        assert (real / "checkpoint" / file).read_bytes() == (noise / "checkpoint" / file).read_bytes(), file
    assert read(real / "run.json")["training"] == read(noise / "run.json")["training"]
    assert (real / "metrics.json").read_bytes() != (noise / "metrics.json").read_bytes()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("caged", ("method.eps=0.1",)),
        ("macr", ("method.c_candidates=0,1,5",)),
        ("galore", ("method.finetune_epochs=3",)),
    ],
)
def test_methods_with_decisions_of_their_own(
    method: str, options: tuple[str, ...], log_csv: Path, tmp_path: Path
) -> None:
    own = [part for option in options for part in ("--set", option)]
    outcome = caged(
        *("train", "--data", log_csv, "--method", method, "--out", tmp_path / "run", "--refit", "--no-report"),
        *(*tiny(method), *EPOCHS, *own),
    )
    assert outcome.code == 0, outcome.err
    training = read(tmp_path / "run" / "run.json")["training"]
    decisions, again = training["decisions"], lines(tmp_path / "run" / "history_refit.jsonl")
    per_stage = {stage["stage"]: stage["epochs"] for stage in decisions["stages"]}
    told = {stage: sum(line["stage"] == stage for line in again) for stage in per_stage}
    assert told == per_stage
    assert training["refit"]["epochs"] == sum(per_stage.values())
    if method == "caged":
        [stage] = decisions["stages"]
        updated = [line["epoch"] for line in again if "update" in line.get("diagnostics", {})]
        assert updated == stage["improved"]
        assert training["state"]["updates"] == len(updated) - 1  # the last one comes after the state that is kept
    if method == "macr":
        assert training["state"]["c"] == decisions["chosen"]["c"]
    if method == "galore":
        assert list(per_stage) == ["pretrain", "finetune"]


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("ease", (), "here it decides nothing"),
        ("lightgcn", ("--no-validation", "--set", "train.epochs=2"), "here it decides nothing"),
        ("lightgcn", ("--protocol", "paper"), "protocol 'paper' decides on the test part"),
    ],
)
def test_where_there_is_nothing_to_replay(
    method: str, options: tuple[str, ...], words: str, released: Path, tmp_path: Path
) -> None:
    arguments = ("train", "--data", released, "--method", method, "--out", tmp_path / "run", "--refit")
    refused(caged(*arguments, *options), words, "leave --refit out")
    assert not (tmp_path / "run").exists()


def test_a_given_first_stage_cannot_be_trained_again(finished_run: Path, log_csv: Path, tmp_path: Path) -> None:
    arguments = ("train", "--data", log_csv, "--method", "galore", "--out", tmp_path / "run", "--refit")
    refused(caged(*arguments, "--init", finished_run, *EPOCHS), "--init stands for the first one")
    assert not (tmp_path / "run").exists()


def test_a_closed_form_that_holds_validation_out_is_fitted_to_all_of_it(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "refit", "--set", "train.validation=yes", "--refit", method="ease")
    train(log_csv, tmp_path / "plain", method="ease")
    model = "checkpoint/model.safetensors"
    assert (tmp_path / "refit" / model).read_bytes() == (tmp_path / "plain" / model).read_bytes()


# ---------------------------------------------------------------- interrupted


def test_killed_between_the_two_trainings(refitted: Path, tmp_path: Path) -> None:
    """What a kill leaves once `run.json` holds the decisions: the second training starts from them."""
    folder = Path(shutil.copytree(refitted, tmp_path / "killed"))
    run = read(folder / "run.json")
    del run["training"]["refit"]
    (folder / "run.json").write_text(json.dumps({**run, "status": "running"}))
    shutil.rmtree(folder / "checkpoint")
    for name in ("history_refit.jsonl", "metrics.json"):
        (folder / name).unlink()
    first = (folder / "history.jsonl").stat().st_mtime_ns
    assert caged("train", "--resume", folder).code == 0
    assert (folder / "history.jsonl").stat().st_mtime_ns == first  # validation has decided already
    for file in ("checkpoint/model.safetensors", "checkpoint/checkpoint.json", "metrics.json"):
        assert (folder / file).read_bytes() == (refitted / file).read_bytes(), file


@pytest.mark.parametrize("keeps_training", [True, False])
def test_killed_after_the_second_training(keeps_training: bool, refitted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(refitted, tmp_path / "killed"))
    run = read(folder / "run.json")
    if not keeps_training:
        del run["training"]
    (folder / "run.json").write_text(json.dumps({**run, "status": "running"}))
    (folder / "metrics.json").unlink()
    model = (folder / "checkpoint" / "model.safetensors").stat().st_mtime_ns
    assert caged("train", "--resume", folder).code == 0
    assert (folder / "checkpoint" / "model.safetensors").stat().st_mtime_ns == model
    assert read(folder / "run.json")["training"] == read(refitted / "run.json")["training"]
    assert (folder / "metrics.json").read_bytes() == (refitted / "metrics.json").read_bytes()


# ---------------------------------------------------------------- in Python


def test_the_class_does_what_the_command_does(refitted: Path, log_csv: Path) -> None:
    options = {"embedding_size": 4, "epochs": 8, "batch_size": 128, "device": "cpu"}
    split = library.split(library.Interactions.read(log_csv), seed=1)
    expected = library.load(refitted, device="cpu").recommend(k=5)
    assert library.LightGCN(**options, refit=True).fit(split).recommend(k=5).equals(expected)
    fitted = library.LightGCN(**options).fit(split)
    before = fitted.recommend(k=5)
    assert fitted.refit(split).recommend(k=5).equals(expected)
    assert fitted.recommend(k=5).equals(before)  # the model that was asked stays as it is


def test_refit_of_saved_models_and_of_runs(refitted: Path, log_csv: Path, tmp_path: Path) -> None:
    data = library.Interactions.read(log_csv)
    fitted = library.MACR(embedding_size=4, epochs=3, batch_size=128, device="cpu").fit(library.split(data))
    again = library.load(fitted.save(tmp_path / "saved"), device="cpu")
    final = again.refit(data)
    assert final.recommend(k=3, exclude_seen=False).equals(fitted.refit(data).recommend(k=3, exclude_seen=False))
    assert len(final.artefact.train) == len(data)
    assert final.artefact.decisions == fitted.artefact.decisions
    of_run = library.load(refitted, device="cpu").refit(data)
    assert of_run.artefact.decisions is not None
    assert of_run.artefact.decisions.to_json() == read(refitted / "run.json")["training"]["decisions"]


def test_a_closed_form_and_new_names(log_csv: Path) -> None:
    data = library.Interactions.read(log_csv)
    fitted = library.EASE(device="cpu").fit(library.split(data))
    assert fitted.refit(data).recommend(k=3).equals(library.EASE(device="cpu").fit(data).recommend(k=3))
    users, items = (ids.values.to_pylist() for ids in (data.user_ids, data.item_ids))
    larger = library.Interactions.from_ids([*users, "new", "new"], [items[0]] * len(users) + ["newer", items[1]])
    assert fitted.refit(larger).recommend("new", k=1)["item_id"].to_pylist() == [items[0]]


def test_a_model_from_before_decisions_were_kept(log_csv: Path, tmp_path: Path) -> None:
    data = library.Interactions.read(log_csv)
    folder = library.MostPopular().fit(data).save(tmp_path / "saved")
    manifest = read(folder / "checkpoint.json")
    (folder / "checkpoint.json").write_text(json.dumps({**manifest, "progress": {}}))
    with pytest.raises(ConfigError, match="saved by a version that did not keep what validation decided"):
        library.load(folder).refit(data)


def test_an_adjustment_stays(log_csv: Path) -> None:
    data = library.Interactions.read(log_csv)
    options = {"embedding_size": 4, "epochs": 2, "batch_size": 128, "device": "cpu"}
    fitted = library.LightGCN(**options).fit(library.split(data))
    adjusted = fitted.adjusted(strength=0.5).refit(data)
    assert adjusted.recommend(k=3).equals(fitted.refit(data).adjusted(strength=0.5).recommend(k=3))
    assert not adjusted.recommend(k=3).equals(fitted.refit(data).recommend(k=3))


def test_a_given_first_stage_is_not_refitted(finished_run: Path, log_csv: Path, tmp_path: Path) -> None:
    options = ("--init", finished_run, *tiny("galore"), *EPOCHS, "--set", "method.finetune_epochs=1")
    outcome = caged("train", "--data", log_csv, "--method", "galore", "--out", tmp_path / "run", *options)
    assert outcome.code == 0, outcome.err
    with pytest.raises(ConfigError, match="of the stages finetune, and this method has pretrain, finetune"):
        library.load(tmp_path / "run", device="cpu").refit(library.Interactions.read(log_csv))
