"""Turns: equal chances, whole rounds, within the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.products.best import search as module
from caged.products.best.search import NO_TIME
from tests.products.best.searches import MadeUp, Time, search_of

SECONDS = {"mostpop": 0.0, "ease": 0.0, "lightgcn": 10.0, "softmax": 20.0}


def test_methods_take_turns_until_every_setting_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time()
    made_up = MadeUp(time, SECONDS, lambda method, number: 0.1)
    monkeypatch.setattr(module, "run_trial", made_up)
    search = search_of(tmp_path, time, budget=3600)
    search.run()
    assert made_up.trained[:6] == ["mostpop", "ease", "lightgcn", "softmax", "ease", "lightgcn"]
    assert {method: made_up.trained.count(method) for method in SECONDS} == {
        "mostpop": 1,
        "ease": 6,
        "lightgcn": 6,
        "softmax": 6,
    }
    assert search.rounds == 6
    assert time.seconds == pytest.approx(180)


def test_a_round_that_would_not_fit_beside_the_refit_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round takes 30 s; the refit of the softmax half of its 20 s, doubled, and a fifth more; 10 s are for the
    end."""
    time = Time()
    monkeypatch.setattr(module, "run_trial", MadeUp(time, SECONDS, lambda method, number: 0.1))
    search = search_of(tmp_path, time, budget=130)
    search.run()
    assert search.rounds == 3
    assert time.seconds == pytest.approx(90)  # 30 more and 24 would be 144, of 120


def test_a_method_whose_first_training_does_not_end_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time()
    monkeypatch.setattr(module, "run_trial", MadeUp(time, {**SECONDS, "softmax": 900.0}, lambda method, number: 0.1))
    search = search_of(tmp_path, time, budget=900)
    search.run()
    assert search.left_out() == {"softmax": NO_TIME}
    assert any("Softmax is left out" in note for note in search.notes())
    assert {trial.method for trial in search.counted()} == {"mostpop", "ease", "lightgcn"}
    assert time.seconds < 900


def test_who_is_slower_than_planned_may_use_what_nobody_was_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LightGCN was to take 10 s and takes 100; the softmax and the refit were promised 20 and 40 of 855."""
    time = Time()
    made_up = MadeUp(time, {**SECONDS, "lightgcn": 100.0}, lambda method, number: 0.1)
    monkeypatch.setattr(module, "run_trial", made_up)
    search = search_of(tmp_path, time, budget=900)
    search.run()
    assert search.left_out() == {}


def test_a_round_that_is_cut_counts_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time()
    seconds = dict(SECONDS)

    def recall(method: str, number: int) -> float:
        seconds["softmax"] = 500.0 if method == "lightgcn" and number == 1 else seconds["softmax"]
        return 0.5 if number == 1 else 0.1

    monkeypatch.setattr(module, "run_trial", MadeUp(time, seconds, recall))
    search = search_of(tmp_path, time, budget=200)
    search.run()
    assert search.rounds == 1
    assert {trial.number for trial in search.counted()} == {0}
    assert search.goal().limits[0].value == pytest.approx(0.08)  # not of the 0.5 in the round that was cut
    assert time.seconds < 200


def test_a_failed_training_is_recorded_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time()

    def recall(method: str, number: int) -> float:
        if method == "lightgcn":
            raise RuntimeError("[enforce fail] out of memory")
        return 0.1

    monkeypatch.setattr(module, "run_trial", MadeUp(time, SECONDS, recall))
    search = search_of(tmp_path, time, budget=3600)
    search.run()
    assert "memory ran out" in search.left_out()["lightgcn"]
    assert search.first("lightgcn") is None
    assert search.rounds == 6


def test_it_is_told_that_lightgcn_had_too_few_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time()
    monkeypatch.setattr(module, "run_trial", MadeUp(time, SECONDS, lambda method, number: 0.1))
    search = search_of(tmp_path, time, budget=3600, epochs=5)  # the best epoch is the fifth
    search.run()
    assert any("still getting better in epoch 5" in note for note in search.notes())
