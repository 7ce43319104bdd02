"""Which trials end early, and that nothing but their numbers and values decides it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from caged.products.tune.choice import choose
from caged.products.tune.halving import Climb, Compared, Curve, Ladder, Pruned, Rung, rungs
from caged.products.tune.journal import Journal
from caged.products.tune.objective import Goal, Limit, Objective
from caged.products.tune.search import Limits, Search
from tests.products.tune.tuned import SideBySide, outcomes, settings, write_log

RECALL = Goal(Objective("recall@20"))


def curve(*values: float, every: int = 1) -> Curve:
    made = Curve("recall@20", ["recall@20"])
    for epoch in range(1, len(values) * every + 1):
        validated = {"recall@20": values[epoch // every - 1], "ndcg@20": 0.0} if epoch % every == 0 else None
        made.epoch({"validation": validated})
    return made


def test_a_curve_knows_its_best_so_far() -> None:
    made = curve(0.1, 0.3, 0.2, 0.3)
    assert made.best_until(1) == {"recall@20": 0.1}
    assert made.best_until(9) == {"recall@20": 0.3}
    assert made.best_epoch == 2
    assert curve(0.1, 0.3, every=5).best_until(4) is None
    assert Curve.from_json(made.to_json()) == made


def test_a_value_that_is_no_number_is_the_worst() -> None:
    made = curve(float("nan"), 0.1)
    assert made.values["recall@20"] == [None, 0.1]
    assert made.best_until(1) == {"recall@20": None}
    assert made.best_until(2) == {"recall@20": 0.1}


def test_rungs_lie_within_the_cap() -> None:
    assert rungs(200) == [25, 50, 100]
    assert rungs(1) == []


def test_the_worse_half_falls_and_equals_go_on() -> None:
    others = tuple({"recall@20": value} for value in (0.1, 0.2, 0.3, 0.4, 0.5))
    rung = Rung(25, others)  # of six, three go on
    assert [rung.goes_on({"recall@20": value}, RECALL) for value in (0.6, 0.35, 0.3, 0.25)] == [True, True, True, False]


def test_constraints_come_first_at_a_rung_too() -> None:
    goal = Goal(Objective("recall@20/niche"), (Limit("recall@20", ">=", 0.5),))
    kept = {"recall@20": 0.5, "recall@20/niche": 0.1}
    rung = Rung(4, (kept, kept))
    assert not rung.goes_on({"recall@20": 0.4, "recall@20/niche": 0.9}, goal)
    assert rung.goes_on({"recall@20": 0.4, "recall@20/niche": 0.9}, Goal(goal.objective))


def test_who_fell_before_a_rung_is_not_compared_there() -> None:
    fell, stayed = Compared(curve(*[0.9] * 8), pruned_after=2), Compared(curve(*[0.1] * 3))
    ladder = Ladder.against([fell, stayed], RECALL, 16)
    assert [(rung.epoch, len(rung.others)) for rung in ladder.rungs] == [(2, 2), (4, 1), (8, 1)]


def test_nobody_is_compared_with_nobody() -> None:
    assert Ladder.against([], RECALL, 16).rungs == ()


def test_training_ends_where_the_whole_curve_would_have_been_cut() -> None:
    good = [Compared(curve(*[0.2] * 16)), Compared(curve(*[0.3] * 16))]
    ladder = Ladder.against(good, RECALL, 16)
    assert ladder.falls_at(curve(0.25, 0.25, *[0.1] * 14)) is None  # its best stays above one of the two
    late = [0.1, 0.1, *[0.9] * 14]
    own = Curve("recall@20", ["recall@20"])
    climb = Climb(ladder, own)
    own.epoch({"validation": {"recall@20": late[0]}})
    climb.epoch({})
    own.epoch({"validation": {"recall@20": late[1]}})
    with pytest.raises(Pruned, match="after 2 epochs it was not in the better half of 3 trials"):
        climb.epoch({})
    fell = ladder.falls_at(curve(*late))
    assert fell is not None
    assert fell.epoch == own.total == 2


# ---------------------------------------------------------------- in a search


def begun(log: Path, folder: Path, **options: Any) -> Search:
    folder.mkdir()
    asked = settings(log, "lightgcn", epochs=8, **options)
    return Search.begin(folder, asked, Search.prepared(asked))


def test_pruned_trials_are_recorded_cannot_win_and_are_the_same_after_a_kill_and_with_workers(tmp_path: Path) -> None:
    log = write_log(tmp_path)
    alone = begun(log, tmp_path / "alone", prune=True, trials=7, seed=4)
    assert alone.run(Limits())
    trials = Journal.read(tmp_path / "alone").trials.values()
    pruned = [trial for trial in trials if trial.status == "pruned"]
    assert pruned
    for trial in pruned:
        assert trial.number >= 5
        assert (trial.metrics, trial.epochs + trial.saved) == (None, 8)
        assert trial.epochs in rungs(8)
        assert "not in the better half" in (trial.reason or "")
    chosen = choose(alone)
    assert chosen is not None
    assert sum(each.pruned for each in chosen.methods) == len(pruned)
    assert sum(each.saved for each in chosen.methods) == sum(trial.saved for trial in pruned)
    assert all(each.trial not in pruned for each in chosen.methods)
    cut = tmp_path / "cut"  # a search that was killed goes on with workers
    cut.mkdir()
    lines = (tmp_path / "alone" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "journal.jsonl").write_bytes(b"".join(lines[:-4]))
    resumed = Search.go_on(cut)
    resumed.crew = SideBySide(resumed.given, 3, seed=1)
    assert resumed.run(Limits())
    assert outcomes(resumed.journal) == outcomes(alone.journal)


def test_curves_are_recorded_without_pruning_too(tmp_path: Path) -> None:
    search = begun(write_log(tmp_path), tmp_path / "t", objective=Objective("recall@20/niche"), trials=1)
    assert search.run(Limits())
    for trial in Journal.read(tmp_path / "t").trials.values():
        assert trial.status == "complete"
        assert trial.curve is not None
        made = Curve.from_json(trial.curve)
        assert made.total == trial.epochs
        best = made.best_until(8)
        assert best is not None
        assert best["recall@20/niche"] == pytest.approx((trial.metrics or {})["recall@20/niche"], rel=1e-6)
        assert "curve" not in trial.to_json()
