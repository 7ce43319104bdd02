"""What fits into the time and the memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from caged.evaluation.adjust import GRID
from caged.products.best import plan as module
from caged.products.best import run
from caged.products.best.clock import Clock
from caged.products.best.plan import Plan, make_plan
from caged.threads import threads
from caged.training import Interrupted
from tests.products.best.searches import Time, wish, written


def planned(
    folder: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, per_epoch: dict[str, float], **options: Any
) -> Plan:
    asked = wish(written(folder), minutes=minutes, epochs=300, **options)
    data, _ = run.read_log(asked)
    monkeypatch.setattr(module._Timing, "epoch", lambda timing, method: per_epoch[method])
    clock = Clock(60 * minutes, now=Time())
    return make_plan(asked, data, len(data.train) * 2, torch.device("cpu"), clock)


def test_with_time_enough_everybody_gets_the_most_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, monkeypatch, 20, {"lightgcn": 0.2, "softmax": 0.5})
    assert plan.methods == ("mostpop", "ease", "lightgcn", "softmax")
    assert (plan.epochs, plan.notes) == (300, ())
    assert plan.refit_factor == 2.0  # twice the pairs: twice the steps


def test_with_less_time_the_cap_falls_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, monkeypatch, 10, {"lightgcn": 1.0, "softmax": 2.0})
    # 80% of 95% of 600 s, shared by an epoch of each and two of the slowest
    assert plan.epochs == int(0.8 * 570 / (1 + 2 + 2 * 2))
    assert plan.methods[2:] == ("lightgcn", "softmax")


def test_what_does_not_fit_is_left_out_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, monkeypatch, 1, {"lightgcn": 0.1, "softmax": 20.0})
    assert plan.methods == ("mostpop", "ease", "lightgcn")
    assert len(plan.notes) == 1
    assert "Softmax is left out: an epoch takes about 20.0 s" in plan.notes[0]
    assert "more --minutes" in plan.notes[0]


def test_closed_forms_are_always_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, monkeypatch, 0.01, {"lightgcn": 20.0, "softmax": 20.0})
    assert plan.methods == ("mostpop", "ease")
    assert len(plan.notes) == 2


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("_free_memory", lambda device: 1000.0, "GiB for 40 items"),
        ("_ease_seconds", lambda items, device: 10_000.0, "would take about 333.3 minutes"),
    ],
)
def test_neighbours_stand_in_where_the_catalogue_is_too_large_for_ease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribute: str, value: Any, words: str
) -> None:
    monkeypatch.setattr(module, attribute, value)
    plan = planned(tmp_path, monkeypatch, 20, {"lightgcn": 0.1, "softmax": 0.1})
    assert plan.methods[:2] == ("mostpop", "itemknn")
    assert "EASE is left out" in plan.notes[0]
    assert words in plan.notes[0]


def test_an_epoch_of_a_large_log_is_timed_on_some_of_its_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = wish(written(tmp_path))
    data, _ = run.read_log(asked)
    clock = Clock(600)
    monkeypatch.setattr(module, "TIMED_PAIRS", 100)
    seen = []

    def run_trial(spec: Any, sample: Any, *_: object, observers: tuple[Any, ...], **__: object) -> None:
        seen.append(len(sample.train))
        observers[0].seconds.append(2.0)
        observers[0].validation.append(0.5)

    monkeypatch.setattr(module, "run_trial", run_trial)
    timing = module._Timing(asked, data, torch.device("cpu"), clock)
    found = timing.epoch("lightgcn")
    assert timing.validation == 0.5  # that part is measured as it is
    assert seen == [100]
    assert found == pytest.approx(2.0 * (len(data.train) / 100) ** 2)


@pytest.mark.parametrize(("alone", "together", "found"), [(1.0, 0.6, 2), (1.0, 30.0, 1)])
def test_as_many_threads_as_are_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: float, together: float, found: int
) -> None:
    """On a busy machine threads wait for each other; then their timing ends as soon as one thread has won."""
    asked = wish(written(tmp_path), threads=None)
    data, _ = run.read_log(asked)
    time = Time()

    def run_trial(*_: object, observers: tuple[Any, ...], stop_requested: Any, **__: object) -> None:
        for _epoch in range(3):
            seconds = alone if torch.get_num_threads() == 1 else together
            time.seconds += seconds
            observers[0].seconds.append(seconds)
            if stop_requested():
                raise Interrupted

    monkeypatch.setattr(module, "run_trial", run_trial)
    with threads(2):
        timing = module._Timing(asked, data, torch.device("cpu"), Clock(600, now=time))
        assert timing.faster_threads() == found
    assert time.seconds == pytest.approx(3 * alone + (3 * together if found == 2 else together))


def test_who_names_the_threads_gets_them(tmp_path: Path) -> None:
    asked = wish(written(tmp_path), threads=2)
    data, _ = run.read_log(asked)
    assert module._Timing(asked, data, torch.device("cpu"), Clock(600)).faster_threads() is None


def test_time_is_kept_for_every_strength_of_every_method_but_bestsellers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, monkeypatch, 20, {"lightgcn": 0.2, "softmax": 0.5})
    assert replace(plan, validation=2.0).adjusting == 3 * len(GRID) * 2.0


def test_a_plan_comes_back_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, monkeypatch, 20, {"lightgcn": 0.2, "softmax": 0.5})
    assert Plan.from_json(plan.to_json()) == plan
