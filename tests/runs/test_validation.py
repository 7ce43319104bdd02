"""No validation part where nothing is chosen: closed forms, and training for a given number of epochs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import caged as library
from caged.data import Interactions
from caged.errors import ConfigError
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.runs.artefact import load_artefact
from caged.runs.environment import resolve_device
from caged.runs.folder import RunFolder
from caged.runs.validation import check_refit
from caged.training import TrainConfig
from tests.cli.invoke import caged, refused, train

CLOSED_FORMS = ("ease", "itemknn", "mostpop")
WITHOUT = ("--no-validation", "--set", "train.epochs=2")


def trained_on(run: Path) -> Interactions:
    return load_artefact(run, resolve_device("cpu")).train


def development(run: Path) -> Interactions:
    parts = RunFolder.read(run).load_data("the run").split
    assert parts.valid is not None
    return Interactions.joined([parts.train, parts.valid])


@pytest.mark.parametrize("method", CLOSED_FORMS)
def test_a_closed_form_trains_on_the_whole_development_part(method, log_csv, tmp_path):
    outcome = train(log_csv, tmp_path / "run", method=method)
    assert outcome.code == 0, outcome.err
    assert "nothing is chosen on validation, so its" in outcome.err
    assert trained_on(tmp_path / "run").fingerprint == development(tmp_path / "run").fingerprint


@pytest.mark.parametrize("method", CLOSED_FORMS)
def test_lists_of_the_run_are_those_of_the_class_on_both_parts(method, log_csv, tmp_path):
    train(log_csv, tmp_path / "run", method=method)
    parts = RunFolder.read(tmp_path / "run").load_data("the run").split
    model = library.Recommender(method).fit(parts.train, parts.valid)
    both = library.Recommender(method).fit(development(tmp_path / "run"))
    stored = pq.read_table(tmp_path / "run" / "recommendations.parquet")
    loaded = library.load(tmp_path / "run")
    users = stored["user_id"].unique()
    expected = both.recommend(users, k=10)
    assert model.recommend(users, k=10).equals(expected)
    assert loaded.recommend(users, k=10).equals(expected)
    top = stored.filter(np.asarray(stored["rank"]) <= 10)
    assert sorted(zip(*(top[name].to_pylist() for name in ("user_id", "rank", "item_id")), strict=True)) == sorted(
        zip(*(expected[name].to_pylist() for name in ("user_id", "rank", "item_id")), strict=True)
    )


def test_no_test_list_holds_what_was_trained_on(log_csv, tmp_path):
    train(log_csv, tmp_path / "run", method="ease")
    stored = pq.read_table(tmp_path / "run" / "recommendations.parquet")
    part = development(tmp_path / "run")
    seen = set(
        zip(
            part.user_ids.external(part.users).to_pylist(),
            part.item_ids.external(part.items).to_pylist(),
            strict=True,
        )
    )
    shown = set(zip(stored["user_id"].to_pylist(), stored["item_id"].to_pylist(), strict=True))
    assert not shown & seen


def test_a_validation_part_can_be_asked_for(log_csv, tmp_path):
    train(log_csv, tmp_path / "run", "--set", "train.validation=yes", method="ease")
    parts = RunFolder.read(tmp_path / "run").load_data("the run").split
    assert trained_on(tmp_path / "run").fingerprint == parts.train.fingerprint
    assert caged("evaluate", tmp_path / "run", "--part", "valid").code == 0


def test_a_part_that_was_trained_on_is_not_evaluated(log_csv, tmp_path):
    train(log_csv, tmp_path / "run", method="ease")
    refused(caged("evaluate", tmp_path / "run", "--part", "valid"), "was trained on the validation part too")


def test_lightgcn_without_validation_runs_all_epochs_on_everything(log_csv, tmp_path):
    outcome = train(log_csv, tmp_path / "run", *WITHOUT)
    assert outcome.code == 0, outcome.err
    assert "all of 2 epochs" in outcome.out
    lines = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [line["validation"] for line in lines] == [None, None]
    assert trained_on(tmp_path / "run").fingerprint == development(tmp_path / "run").fingerprint


def test_the_class_without_validation_is_the_run(log_csv, tmp_path):
    train(log_csv, tmp_path / "run", *WITHOUT, "--device", "cpu")
    spec = RunFolder.read(tmp_path / "run").spec
    model = library.LightGCN(
        embedding_size=spec.config.embedding_size,
        layers=spec.config.layers,
        batch_size=spec.train.batch_size,
        epochs=2,
        validation="no",
        device="cpu",
    ).fit(development(tmp_path / "run"))
    expected = library.load(tmp_path / "run", device="cpu").recommend(k=5)
    assert model.recommend(k=5)["item_id"].equals(expected["item_id"])


def test_without_validation_somebody_has_to_say_when_to_stop(log_csv, tmp_path):
    arguments = ("train", "--data", log_csv, "--method", "lightgcn", "--out", tmp_path / "run", "--no-validation")
    refused(caged(*arguments), "nothing ends the training of lightgcn before its 1000 epochs", "train.epochs=N")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match=r"train\.epochs=N"):
        library.LightGCN(validation="no").fit(Interactions.from_ids(["a", "b"], ["x", "y"]))


@pytest.mark.parametrize(("method", "why"), [("caged", "its edge weights change only"), ("macr", "method.c=scan")])
def test_methods_that_choose_on_validation_refuse_to_do_without(method, why, log_csv, tmp_path):
    arguments = ("train", "--data", log_csv, "--method", method, "--out", tmp_path / "run", *WITHOUT)
    refused(caged(*arguments), f"{method} cannot be trained without a validation part", why)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--protocol", "paper"), "protocol 'paper' decides on the test part"),
        (("--validate-on", "source=explore"), "leave one of them out"),
    ],
)
def test_what_contradicts_it_is_refused(arguments, words, log_csv, tmp_path):
    refused(
        caged("train", "--data", log_csv, "--method", "lightgcn", "--out", tmp_path / "run", *WITHOUT, *arguments),
        words,
    )


def test_a_run_compares_with_an_audit_of_the_same_two_files_and_with_other_methods(released, tmp_path):
    for method in ("mostpop", "lightgcn"):
        assert train(released, tmp_path / method, method=method).code == 0
    lists = tmp_path / "mostpop" / "recommendations.parquet"
    audited = caged(
        "audit", lists, "--train", released / "train.txt", "--test", released / "test.txt", "-o", tmp_path / "audit"
    )
    assert audited.code == 0, audited.err
    for others in (("audit",), ("lightgcn",), ("audit", "lightgcn")):
        outcome = caged("compare", tmp_path / "mostpop", *(tmp_path / other for other in others), "--json")
        assert outcome.code == 0, outcome.err
    found = json.loads(caged("compare", tmp_path / "mostpop", tmp_path / "audit", "--json").out)
    recall = next(one for one in found["differences"] if one["metric"] == "recall@20")
    assert recall["difference"] == 0.0
    assert any("popularity is counted slightly differently" in note for note in found["notes"])
    against = ("--fail-if", "recall@20 drops 1%", "--against", tmp_path / "mostpop")
    gated = caged("audit", lists, "--train", released / "train.txt", "--test", released / "test.txt", *against)
    assert gated.code == 0, gated.err


def test_a_method_says_why_it_cannot_be_refitted():
    class Reading(LightGCN):
        def cannot_replay(self):
            return "its step size follows the numbers of validation"

    config = TrainConfig(refit=True)
    check_refit("lightgcn", LightGCN(LightGCNConfig()), config)
    with pytest.raises(ConfigError, match="mine cannot be refitted: its step size follows the numbers of validation"):
        check_refit("mine", Reading(LightGCNConfig()), config)
    check_refit("mine", Reading(LightGCNConfig()), TrainConfig())


def test_validation_on_a_sample_of_users_is_told_and_recorded(log_csv, tmp_path):
    outcome = train(log_csv, tmp_path / "run", "--set", "train.validation_users=5")
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    parts = RunFolder.read(tmp_path / "run").load_data("the run").split
    everybody = len(np.unique(parts.valid.users))
    assert run["training"]["validation_users"] == {"sampled": 5, "of": everybody}
    assert f"validation ranked for a random sample of 5 of {everybody} users" in outcome.err
    model = library.Recommender(
        "lightgcn", epochs=2, batch_size=128, embedding_size=4, validation_users=5, device="cpu"
    )
    lines = []

    class Watch:
        def epoch(self, line):
            lines.append(line["validation"]["recall@20"])

    model.fit(parts.train, parts.valid, observers=(Watch(),))
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert lines == pytest.approx([line["validation"]["recall@20"] for line in history])


def test_nothing_is_told_of_a_sample_of_everybody(log_csv, tmp_path):
    outcome = train(log_csv, tmp_path / "run", "--set", "train.validation_users=100000")
    assert "random sample" not in outcome.err
    assert "validation_users" not in json.loads((tmp_path / "run" / "run.json").read_text())["training"]
