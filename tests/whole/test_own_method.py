"""A method of one's own: one class, one line of registration, and everything else finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import caged as library
from caged.config import option
from caged.errors import ConfigError
from caged.graph import Batch, BipartiteGraph, Tables
from caged.models import METHODS, DotScorer, Losses, Method, ParamGroup, Scorer, Stage, State, register
from caged.seeding import Generators
from tests.cli.invoke import caged

NAME = "toy"


@dataclass(frozen=True)
class ToyConfig:
    scale: float = option(0.5, "size of the initial values", source="a dream", above=0)


class Toy(Method[ToyConfig]):
    """Learns one number per item, in two stages; counts its epochs."""

    def stages(self) -> tuple[Stage, ...]:
        return (Stage("warm", epochs=2), Stage("hot", sampler="user_uniform", fresh_optimizer=True))

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        start = torch.rand(graph.item_count, 1, generator=generators.on_host("init"))
        self.bias = nn.Parameter((self.config.scale * start).to(graph.device))
        self.ones = torch.ones(graph.user_count, 1, device=graph.device)
        self.epochs_done = 0

    def parameters(self, stage: Stage) -> list[ParamGroup]:
        return [{"params": [self.bias]}]

    def loss(self, batch: Batch) -> Losses:
        margin = self._of(batch.positives) - self._of(batch.negatives)
        total = (nn.functional.softplus(-margin) * batch.weight).sum()
        return Losses(total, {"bpr": total})

    def end_epoch(self, ctx: object) -> None:
        self.epochs_done += 1

    def scorer(self) -> Scorer:
        return DotScorer(Tables(self.ones, self.bias.detach()))

    def state(self) -> State:
        return State({"bias": self.bias.data}, {"epochs_done": self.epochs_done})

    def load_scalars(self, scalars: object) -> None:
        self.epochs_done = dict(scalars)["epochs_done"]  # type: ignore[call-overload]

    def _of(self, items: Tensor) -> Tensor:
        return self.bias.index_select(0, items).squeeze(1)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(NAME, Toy, ToyConfig, "one number per item")
    yield
    del METHODS[NAME]


def test_it_is_listed_and_shown() -> None:
    assert "one number per item" in caged("methods").out
    shown = caged("methods", "show", NAME).out
    [line] = [line for line in shown.splitlines() if line.startswith("method.scale")]
    assert "0.5" in line
    assert "a dream" in line
    assert "train.epochs" in shown


def test_it_trains_through_the_command_line(log_csv: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    outcome = caged(
        *("train", "--data", log_csv, "--method", NAME, "--out", run, "--device", "cpu"),
        *("--set", "train.epochs=3", "--set", "method.scale=2", "--set", "train.learning_rate=0.1"),
    )
    assert outcome.code == 0, outcome.err
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert [(line["stage"], line["epoch"]) for line in lines] == [
        *(("warm", epoch) for epoch in (1, 2)),
        *(("hot", epoch) for epoch in (1, 2, 3)),
    ]
    assert json.loads((run / "run.json").read_text())["spec"]["config"]["method"] == {"scale": 2.0}
    assert caged("recommend", run, "--all-users", "-k", "3").code == 0


@pytest.mark.parametrize("stop_after", [1, 2, 3, 4])
def test_it_resumes_within_and_between_its_stages(
    stop_after: int, log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def options(folder: Path) -> list[str]:
        common = ["train", "--data", str(log_csv), "--method", NAME, "--device", "cpu", "--threads", "1"]
        return [*common, "--set", "train.epochs=3", "--set", "train.learning_rate=0.1", "--out", str(folder)]

    assert caged(*options(tmp_path / "whole")).code == 0
    with monkeypatch.context() as stopping:
        calls = iter(range(1, 100))
        stopping.setattr("caged.cli.progress.StopOnCtrlC.__call__", lambda self: next(calls) == stop_after)
        assert caged(*options(tmp_path / "stopped")).code == 130
    assert len((tmp_path / "stopped" / "history.jsonl").read_text().splitlines()) == stop_after
    assert caged("train", "--resume", tmp_path / "stopped").code == 0
    for name in ("metrics.json", "checkpoint/model.safetensors", "checkpoint/checkpoint.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes()


def test_it_is_an_estimator(log_csv: Path, tmp_path: Path) -> None:
    split = library.split(library.Interactions.read(log_csv), seed=1)
    model = library.Recommender(NAME, scale=0.1, epochs=2, device="cpu").fit(split.train, valid=split.valid)
    table = model.recommend(["u01"], k=3)
    loaded = library.load(model.save(tmp_path / "model"), device="cpu")
    assert loaded.recommend(["u01"], k=3).equals(table)
    assert type(loaded) is library.Recommender  # it has no class of its own
    assert loaded.train_config == model.train_config
    with pytest.raises(ConfigError, match="did you mean 'scale'"):
        library.Recommender(NAME, scal=0.1)


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ConfigError, match="'toy' is registered already, by Toy"):
        register(NAME, Toy, ToyConfig, "again")


def test_a_model_of_a_method_that_is_gone(log_csv: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert caged("train", "--data", log_csv, "--method", NAME, "--out", run, "--set", "train.epochs=1").code == 0
    known = METHODS.pop(NAME)
    try:
        outcome = caged("recommend", run, "--all-users")
    finally:
        METHODS[NAME] = known
    assert outcome.code == 2
    assert "unknown method 'toy'" in outcome.error
