"""One trial hands out what it trained to whoever asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from caged.evaluation.evaluate import make_validator
from caged.models import Method
from caged.products.tune.trial import load_search_data, run_trial
from caged.training import Decisions
from tests.products.tune.tuned import settings, write_log


def test_the_trained_method_has_the_best_state_and_comes_with_its_decisions(tmp_path: Path) -> None:
    spec = settings(write_log(tmp_path), "lightgcn").spec("lightgcn")
    data = load_search_data(spec)
    found: list[tuple[Method[Any], Decisions]] = []
    outcome = run_trial(
        spec, data, torch.device("cpu"), [20], trained=lambda method, decisions: found.append((method, decisions))
    )
    [(method, decisions)] = found
    assert decisions.stages[0].epochs == outcome.best_epoch
    assert make_validator(data.train, data.valid)(method.scorer())["recall@20"] == outcome.metrics["recall@20"]
