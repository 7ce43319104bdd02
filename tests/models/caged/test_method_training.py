"""CAGED in the training loop: resume, state, the two-stage ablation, diagnostics, divergence."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from caged.errors import TrainingError
from caged.files import json_ready
from caged.graph import BipartiteGraph, degree_weights
from caged.models import METHODS, State
from caged.models.caged.method import CAGED, CAGEDConfig
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.runs.artefact import save_model
from caged.seeding import Generators
from caged.training import Interrupted, Loop, TrainConfig, load_checkpoint
from tests.models.caged.test_method import SMALL, Recorder, prepared, update, weights_of
from tests.models.logs import skewed

CONFIG = TrainConfig(epochs=5, batch_size=64, learning_rate=0.01, patience=None, checkpoint_seconds=0)
GRAPH = BipartiteGraph.from_interactions(skewed())
VARIANTS = {
    "as published": {},
    "without two stages": {"without": "two_stage", "estimator_pretrain_epochs": 2},
    "without two stages, fixed": {"without": "two_stage", "ts_eval": "fixed", "estimator_pretrain_epochs": 2},
    "without the condition": {"without": "update_condition"},
    "shuffled": {"likelihood": "shuffled"},
    "normalised": {"weight_form": "normalised"},
}


def loop(method, folder=None, *, observers=(), stop=lambda: False, config=CONFIG):
    def validate(scorer):
        return {"recall@20": float(scorer(torch.arange(GRAPH.user_count)).std())}

    return Loop(
        method,
        GRAPH,
        config,
        Generators(1),
        validate,
        folder=folder,
        stored=None if folder is None else load_checkpoint(folder),
        observers=observers,
        stop_requested=stop,
    )


def caged(**options):
    return CAGED(CAGEDConfig(**{**SMALL, "eps": 0.1, **options}))


def without_times(record):
    cleaned = json.loads(json.dumps(json_ready(record)))
    cleaned.pop("seconds")
    cleaned.get("diagnostics", {}).pop("update_seconds", None)
    return cleaned


@pytest.mark.parametrize("variant", VARIANTS)
def test_resume_after_every_epoch_equals_an_uninterrupted_run(variant, tmp_path):
    """Weights, estimator, its moments and every random stream come back: the same bits, and the same history."""
    whole, recorder = caged(**VARIANTS[variant]), Recorder()
    loop(whole, tmp_path / "whole", observers=(recorder,)).run()
    assert any("update" in record.get("diagnostics", {}) for record in recorder.records)
    seen = []
    while len(seen) < len(recorder.records):
        observer = Recorder()
        with pytest.raises(Interrupted):
            loop(caged(**VARIANTS[variant]), tmp_path / "pieces", observers=(observer,), stop=lambda: True).run()
        assert len(observer.records) == 1
        seen += observer.records
    last = caged(**VARIANTS[variant])
    loop(last, tmp_path / "pieces").run()
    for name, value in whole.state().tensors.items():
        assert torch.equal(last.state().tensors[name], value), name
    assert last.updates == whole.updates
    assert [without_times(record) for record in seen] == [without_times(record) for record in recorder.records]


def test_a_state_comes_back_whole_and_in_place():
    method, other = prepared(eps=0.3), prepared(seed=9, eps=0.3)
    update(method, 2)
    held = other.state().tensors
    addresses = {name: value.data_ptr() for name, value in held.items()}
    other.load_state(method.state().clone())
    assert {name: value.data_ptr() for name, value in other.state().tensors.items()} == addresses
    assert other.updates == 2
    other.estimator.noise.set_state(method.estimator.noise.get_state())
    for one in (method, other):
        update(one)  # also what the next update does is the same: moments and operator came along
    assert torch.equal(weights_of(method), weights_of(other))
    assert torch.equal(method.scorer().vectors.users, other.scorer().vectors.users)


def test_what_is_kept_for_serving_holds_no_estimator_and_gives_the_same_scores(tmp_path):
    method = prepared(GRAPH, eps=0.3)
    update(method, 2)
    save_model(tmp_path, "caged", method, {}, training_data="")
    stored = load_checkpoint(tmp_path)
    assert set(stored.tensors()) == {"users", "items", "to_user", "to_item"}
    other = prepared(GRAPH, seed=9, eps=0.3)
    fresh = other.state().clone()
    other.load_serving_state(State(stored.tensors(), stored.meta["scalars"]))
    for mine, theirs in zip(other.scorer().vectors, method.scorer().vectors, strict=True):
        assert torch.equal(mine, theirs)
    assert other.updates == 2
    assert torch.equal(other.state().tensors["estimator.output.weight"], fresh.tensors["estimator.output.weight"])
    other.load_serving_state(fresh)  # files of earlier versions hold the whole state
    assert torch.equal(other.state().tensors["users"], fresh.tensors["users"])


# ---------------------------------------------------------------- without=two_stage


def test_two_stage_starts_over_with_lightgcns_tables_and_a_trained_estimator():
    records = Recorder()
    start = {}

    class Spy(CAGED):
        def begin_epoch(self, ctx):
            if ctx.stage == "pretrain" and ctx.epoch == 1:
                start["tables"] = self.encoder.users.detach().clone()
                start["network"] = self.estimator.state()["estimator.output.weight"].clone()
            super().begin_epoch(ctx)
            if ctx.stage == "train":
                self.diary.append(self.estimator.state()["estimator.output.weight"].clone())
                if ctx.epoch == 1:
                    assert torch.equal(self.encoder.users, start["tables"])
                    assert torch.equal(self.weights.to_user, degree_weights(GRAPH).to_user)

    method = Spy(CAGEDConfig(**SMALL, eps=0.1, without="two_stage", estimator_pretrain_epochs=2))
    method.diary = []
    loop(method, observers=(records,)).run()
    stages = [record["stage"] for record in records.records]
    assert stages == ["pretrain"] * 5 + ["train"] * 5
    assert not any("diagnostics" in record for record in records.records[:5])  # LightGCN only
    assert not torch.equal(method.diary[0], start["network"])
    assert all(torch.equal(network, method.diary[0]) for network in method.diary)  # never fine-tuned again
    assert "pretraining" in records.records[5]["diagnostics"]
    assert all("training" not in record.get("diagnostics", {}) for record in records.records)


def test_two_stage_pretrains_lightgcn_itself():
    stages = []
    for method in (caged(without="two_stage", estimator_pretrain_epochs=1), LightGCN(LightGCNConfig(4, 2))):
        recorder = Recorder()
        loop(method, observers=(recorder,)).run()
        stages.append([record["loss"] for record in recorder.records[:5]])
    assert stages[0] == stages[1]


def test_ts_eval_chooses_the_embeddings_that_are_scored():
    """On the fixed ones the mean scores stay the same from update to update, on the current ones they move."""
    elbos = {}
    for kind in ("current", "fixed"):
        recorder = Recorder()
        options = {"without": "two_stage", "ts_eval": kind, "score_z": "mean", "estimator_pretrain_epochs": 1}
        loop(caged(**options), observers=(recorder,)).run()
        logs = [record["diagnostics"] for record in recorder.records if "update" in record.get("diagnostics", {})]
        elbos[kind] = [log["to_user"]["elbo"]["50%"] for log in logs]
        assert len(elbos[kind]) > 1
    assert len(set(elbos["fixed"])) == 1
    assert len(set(elbos["current"])) == len(elbos["current"])


# ---------------------------------------------------------------- diagnostics


def test_diagnostics_of_an_update():
    recorder = Recorder()
    loop(caged(weight_form="code"), observers=(recorder,)).run()
    log = next(record["diagnostics"] for record in recorder.records if "diagnostics" in record)
    json.dumps(json_ready(log), allow_nan=False)
    assert set(log) == {"update", "training", "operator_norm", "to_user", "to_item", "update_seconds"}
    assert set(log["training"]) == {"recon", "kl"}
    assert set(log["update_seconds"]) == {"training", "scoring", "blend", "diagnostics"}
    for side in ("to_user", "to_item"):
        found = log[side]
        assert set(found) == {
            "recon", "kl_per_pair", "active_units", "elbo", "likelihood", "degree_correlation", "weight_ratio",
            "row_sums", "operator_norm",
        }  # fmt: skip
        assert found["elbo"]["min"] >= 0
        assert 0 <= found["active_units"] <= SMALL["embedding_size"]
        assert -1 <= found["degree_correlation"] <= 1
        assert found["weight_ratio"]["min"] <= found["weight_ratio"]["mean"] <= found["weight_ratio"]["max"]
        assert found["row_sums"]["min"] > 0
    assert log["operator_norm"] == max(log["to_user"]["operator_norm"], log["to_item"]["operator_norm"])


def test_diagnostics_speak_of_the_weights_in_force():
    method = prepared(eps=0.4, weight_form="code")
    base = weights_of(method)
    [log] = update(method)
    ratio = weights_of(method) / base
    assert log["to_user"]["weight_ratio"]["max"] == pytest.approx(ratio[0].max().item())
    assert log["to_item"]["weight_ratio"]["mean"] == pytest.approx(ratio[1].mean().item(), rel=1e-5)


# ---------------------------------------------------------------- divergence, cost


def test_replacing_the_weights_at_a_high_rate_ends_in_a_clear_error():
    """Weights of a size that explodes through the layers: training stops with a sentence, whoever notices first."""
    method = caged(without="momentum", layers=3, lam=0.0, beta=0.0)
    config = dataclasses.replace(CONFIG, learning_rate=1e30, epochs=20)
    with pytest.raises(TrainingError, match=r"(became (nan|inf) in epoch|CAGED diverged)"):
        loop(method, config=config).run()


def test_memory_of_scoring_does_not_grow_with_the_edges(monkeypatch):
    """The largest tensor that scoring makes per chunk has CHUNK rows, however many edges there are."""
    import caged.models.caged.estimator as module

    rows = []
    original = module.elbo

    def spy(network, batch_rows, *arguments, **options):
        rows.append(len(batch_rows))
        return original(network, batch_rows, *arguments, **options)

    monkeypatch.setattr(module, "CHUNK", 32)
    method = caged(estimator_batch_size=32)
    method.prepare(GRAPH, Generators(1))
    monkeypatch.setattr(module, "elbo", spy)
    update(method)
    assert GRAPH.edge_count == 320
    assert max(rows) == 32


def test_caged_is_registered_once_under_its_name():
    assert METHODS["caged"].method is CAGED
    assert METHODS["caged"].config is CAGEDConfig


# ---------------------------------------------------------------- CUDA


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("tf32", 1e-2), ("bf16", 5e-2)])
def test_scores_on_cuda_agree_with_cpu(precision, tolerance):
    on_cpu, on_gpu = caged(score_z="mean"), caged(score_z="mean", estimator_precision=precision)
    on_cpu.prepare(GRAPH, Generators(1))
    on_gpu.prepare(GRAPH.to("cuda"), Generators(1, "cuda"))
    on_gpu.load_state(on_cpu.state().clone())
    allowed = torch.backends.cuda.matmul.allow_tf32
    for mine, other in zip(on_gpu.sides, on_cpu.sides, strict=True):
        found = on_gpu._score(mine, on_gpu._inputs()).loss.cpu()
        torch.testing.assert_close(found, on_cpu._score(other, on_cpu._inputs()).loss, rtol=tolerance, atol=tolerance)
    assert torch.backends.cuda.matmul.allow_tf32 == allowed


@pytest.mark.gpu
@pytest.mark.parametrize("weight_form", ["paper", "code", "normalised"])
def test_updates_on_cuda_keep_their_bounds(weight_form):
    method = caged(weight_form=weight_form, eps=0.5)
    method.prepare(GRAPH.to("cuda"), Generators(1, "cuda"))
    logs = update(method, 3)
    assert all(log["training"]["recon"] >= 0 for log in logs)
    assert torch.isfinite(weights_of(method)).all()
    for side, weights in zip(method.sides, weights_of(method), strict=True):
        bound = method._scale * side.base if weight_form == "code" else side.per_edge(side.normaliser)
        assert (weights <= bound * (1 + 1e-5)).all()
