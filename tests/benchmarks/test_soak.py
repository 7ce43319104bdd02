"""The soak test itself: what it draws, what it calls flat, and once for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.soak import drawn, main, memory_kept, what_does_not_hold
from benchmarks.soak_questions import Question


def test_so_many_are_asked_and_so_many_of_them_are_bad() -> None:
    good = [Question("known", b"", 200, {}) for _ in range(7)]
    bad = [Question("bad", b"", 400, {}) for _ in range(3)]
    questions, turns = drawn(good, bad, 10_000, 0.05, seed=1)
    assert len(turns) == 10_000
    assert set(turns) == set(range(10))
    assert 400 < sum(questions[place].kind == "bad" for place in turns) < 600


def test_memory_is_flat_where_its_end_is_its_beginning() -> None:
    kept = memory_kept([(0.05, 1), (0.1, 100), (0.15, 110), (0.19, 120), (0.5, 999), (0.9, 130), (1.0, 112)])
    assert kept == {"after_warm_up_bytes": 110, "at_the_end_bytes": 121, "growth": pytest.approx(0.1)}
    assert memory_kept([(0.5, 1)]) is None


def test_whatever_does_not_hold_is_named() -> None:
    fine = {
        "wrong_answers": 0,
        "errors_on_good_requests": 0,
        "bad_requests_answered_otherwise": 0,
        "swaps": 3,
        "swaps_taken": 3,
        "swaps_refused": 0,
        "memory": {"growth": 0.049},
    }
    assert what_does_not_hold(fine) == []
    for name, value in (("wrong_answers", 1), ("swaps_taken", 2), ("swaps_refused", 1), ("memory", {"growth": 0.051})):
        assert len(what_does_not_hold({**fine, name: value})) == 1


@pytest.mark.slow
def test_a_short_one_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--requests", "40000", "--swap-every", "4", "--bad", "5%", "--out", str(tmp_path / "soak.json")])
    record = json.loads((tmp_path / "soak.json").read_text())
    assert json.loads(capsys.readouterr().out) == record
    assert record["requests"] == 40_000
    assert record["swaps"] > 0
