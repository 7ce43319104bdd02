"""Who trains when: turns, references, budgets, failures, and processes that die."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caged.errors import RunError, TrainingError
from caged.products.tune import attempt
from caged.products.tune import search as searching
from caged.products.tune.choice import choose
from caged.products.tune.journal import Journal
from caged.products.tune.objective import Constraint, Objective
from caged.products.tune.search import Limits, Search
from caged.products.tune.settings import Settings
from caged.runs.spec import ExperimentSpec
from caged.training import Interrupted
from tests.products.tune.tuned import MadeUp, SideBySide, outcomes, settings, write_log

NO_LIMITS = Limits()
MadeUpFactory = Callable[..., MadeUp]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> MadeUpFactory:
    def replace(*arguments: Any) -> MadeUp:
        made = MadeUp(*arguments)
        monkeypatch.setattr(attempt, "run_trial", made)
        return made

    return replace


def begin(folder: Path, asked: Settings) -> Search:
    folder.mkdir()
    return Search.begin(folder, asked, Search.prepared(asked))


def test_methods_take_turns_and_begin_with_their_defaults(log: Path, tmp_path: Path, made_up: MadeUpFactory) -> None:
    made = made_up()
    search = begin(tmp_path / "t", settings(log, "lightgcn", "ips", "mostpop"))
    assert search.run(NO_LIMITS)
    assert [method for method, _ in made.trained] == ["lightgcn", "ips", "mostpop", *["lightgcn", "ips"] * 2]
    assert [rate for _, rate in made.trained[:2]] == [1e-3, 1e-3]
    assert len(search.journal.of("mostpop")) == 1  # it has nothing to try
    chosen = choose(search)
    assert chosen is not None
    assert [len(each.counted) for each in chosen.methods] == [3, 3, 1]
    assert [each.epochs for each in chosen.methods] == [6, 6, 2]


def test_methods_get_the_same_draws_of_what_they_share(log: Path, tmp_path: Path, made_up: MadeUpFactory) -> None:
    """The seed of the search is everybody's: before the sampler learns, equal spaces give equal settings."""
    made_up()
    search = begin(tmp_path / "t", settings(log, "lightgcn", "lightgcn_bce", trials=4))
    search.run(NO_LIMITS)
    first, second = ([trial.values for trial in search.journal.of(name)] for name in ("lightgcn", "lightgcn_bce"))
    assert first == second


def test_a_reference_is_tuned_first_for_what_others_are_held_to(
    log: Path, tmp_path: Path, made_up: MadeUpFactory
) -> None:
    made = made_up()
    held = Constraint.parse("recall@20>=95% of ips")
    asked = settings(log, "lightgcn", "ips", objective=Objective("recall@20/niche"), constraints=[held], trials=8)
    search = begin(tmp_path / "t", asked)
    assert search.run(NO_LIMITS)
    assert [method for method, _ in made.trained] == ["ips"] * 8 + ["lightgcn"] * 8
    assert search.journal.frozen == {"ips": 8}
    best = max(trial.metrics["recall@20"] or 0 for trial in search.journal.of("ips") if trial.metrics)
    assert search.goal().limits[0].value == 0.95 * best
    chosen = choose(search)
    assert chosen is not None
    for each in chosen.methods:
        assert each.trial is not None
        feasible = [trial for trial in each.counted if search.goal().feasible(trial.metrics or {})]
        if feasible:
            assert each.trial == max(feasible, key=lambda trial: (trial.metrics or {})["recall@20/niche"] or 0)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TrainingError("the loss became nan"), "the loss became nan"),
        (KeyError("weights"), "KeyError: 'weights'"),
        (MemoryError(), "memory ran out (no more could be allocated)"),
    ],
)
def test_a_failed_trial_is_recorded_and_the_search_goes_on(
    error: Exception, reason: str, log: Path, tmp_path: Path, made_up: MadeUpFactory
) -> None:
    def diverge(count: int, spec: ExperimentSpec) -> None:
        if spec.train.learning_rate == 1e-3:
            raise error

    made_up(diverge)
    search = begin(tmp_path / "t", settings(log, "lightgcn"))
    assert search.run(NO_LIMITS)
    first, *others = search.journal.of("lightgcn")
    assert first.status == "failed"
    assert (first.reason or "").startswith(reason)
    assert [trial.status for trial in others] == ["complete"] * 2
    chosen = choose(search)
    assert chosen is not None
    assert chosen.methods[0].failed == 1


class Killed(BaseException):
    """Nothing in a search may catch it, as nothing can catch kill -9."""


@pytest.mark.parametrize("after", range(6))
def test_a_killed_search_goes_on_as_if_nothing_had_happened(
    after: int, log: Path, tmp_path: Path, made_up: MadeUpFactory
) -> None:
    asked = settings(log, "lightgcn", "ips")
    made_up()
    whole = begin(tmp_path / "whole", asked)
    whole.run(NO_LIMITS)

    def die(count: int, spec: ExperimentSpec) -> None:
        if count == after:
            raise Killed

    made_up(die)
    with pytest.raises(Killed):
        begin(tmp_path / "killed", asked).run(NO_LIMITS)
    again = made_up()
    resumed = Search.go_on(tmp_path / "killed")
    assert resumed.run(NO_LIMITS)
    assert outcomes(Journal.read(tmp_path / "killed")) == outcomes(whole.journal)
    assert len(again.trained) == 6 - after  # nothing was trained twice


def test_a_trial_is_made_however_often_its_process_dies(log: Path, tmp_path: Path, made_up: MadeUpFactory) -> None:
    def die(count: int, spec: ExperimentSpec) -> None:
        raise Killed

    made_up(die)
    search = begin(tmp_path / "t", settings(log, "ease", trials=1))
    for _ in range(12):
        with pytest.raises(Killed):
            search.run(NO_LIMITS)
        search = Search.go_on(tmp_path / "t")
    made_up()
    assert search.run(NO_LIMITS)
    made = search.journal.trials["ease", 0]
    assert (made.status, made.kills) == ("complete", 12)


@pytest.mark.parametrize("workers", [2, 7])
def test_any_number_of_workers_makes_the_same_trials(
    workers: int, log: Path, tmp_path: Path, made_up: MadeUpFactory
) -> None:
    made_up()
    held = Constraint.parse("recall@20>=95% of ips")
    asked = settings(log, "lightgcn", "ips", "mostpop", "lightgcn_bce", constraints=[held], trials=11)
    alone = begin(tmp_path / "alone", asked)
    assert alone.run(NO_LIMITS)
    for seed in range(2):
        search = begin(tmp_path / str(seed), asked)
        search.crew = SideBySide(search.given, workers, seed, deaths=0.1 * seed)
        assert search.run(NO_LIMITS)
        assert outcomes(Journal.read(tmp_path / str(seed))) == outcomes(alone.journal)
        kills = sum(trial.kills for trial in search.journal.trials.values())
        assert (kills > 0) == (seed > 0)


def test_a_trial_that_brings_every_worker_down_fails_with_the_reason(
    log: Path, tmp_path: Path, made_up: MadeUpFactory
) -> None:
    made_up()
    search = begin(tmp_path / "t", settings(log, "mostpop"))
    search.crew = SideBySide(search.given, 2, 0, deaths=1.0)
    assert search.run(NO_LIMITS)
    made = search.journal.trials["mostpop", 0]
    assert (made.status, made.reason) == ("failed", "its process was killed, 5 times in a row")
    lost = [line for line in search.journal.path.read_text().splitlines() if '"lost"' in line]
    assert len(lost) == 4
    assert all('"reason": "its process was killed"' in line for line in lost)


def test_what_a_reference_made_after_a_gap_does_not_count(
    log: Path, tmp_path: Path, made_up: MadeUpFactory, clock: Clock
) -> None:
    """Side by side, a later trial may be over while an earlier one is stopped: nobody is held to it."""

    def interrupt(count: int, spec: ExperimentSpec) -> None:
        clock.now += 1
        if count == 2:
            raise Interrupted

    made_up(interrupt)
    held = Constraint.parse("recall@20>=95% of ips")
    search = begin(tmp_path / "t", settings(log, "lightgcn", "ips", constraints=[held], trials=5))
    search.crew = SideBySide(search.given, 5, 3)
    search.run(Limits(100.0, share_out=True))
    trials = search.journal.of("ips")
    counted = search.journal.frozen["ips"]
    assert 0 < counted < sum(trial.metrics is not None for trial in trials)
    best = max((trial.metrics or {})["recall@20"] or 0.0 for trial in trials[:counted])
    assert search.goal().limits[0].value == 0.95 * best


class Clock:
    """A training takes a second."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def tick(self, count: int, spec: ExperimentSpec) -> None:
        self.now += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(searching, "monotonic", made)
    return made


def test_the_budget_ends_a_search_and_an_unfinished_round_counts_for_nobody(
    log: Path, tmp_path: Path, made_up: MadeUpFactory, clock: Clock
) -> None:
    made_up(clock.tick)
    asked = settings(log, "lightgcn", "ips")
    search = begin(tmp_path / "t", asked)
    assert not search.run(Limits(3.0))
    chosen = choose(search)
    assert chosen is not None
    assert (chosen.rounds, chosen.dropped) == (1, 1)
    assert [len(each.counted) for each in chosen.methods] == [1, 1]
    assert Search.go_on(tmp_path / "t").run(NO_LIMITS)
    whole = begin(tmp_path / "whole", asked)
    whole.run(NO_LIMITS)
    assert outcomes(Journal.read(tmp_path / "t")) == outcomes(whole.journal)


def test_a_trial_that_the_budget_interrupts_is_made_later_with_the_same_values(
    log: Path, tmp_path: Path, made_up: MadeUpFactory
) -> None:
    def interrupt(count: int, spec: ExperimentSpec) -> None:
        if count == 2:
            raise Interrupted

    made_up(interrupt)
    search = begin(tmp_path / "t", settings(log, "lightgcn"))
    assert not search.run(NO_LIMITS)
    queued = search.journal.trials["lightgcn", 2]
    assert (queued.status, queued.kills) == ("queued", 0)
    values = queued.values
    made_up()
    again = Search.go_on(tmp_path / "t")
    assert again.run(NO_LIMITS)
    assert again.journal.trials["lightgcn", 2].values == values


def test_a_reference_leaves_the_others_their_share_of_the_time(
    log: Path, tmp_path: Path, made_up: MadeUpFactory, clock: Clock
) -> None:
    made_up(clock.tick)
    held = Constraint.parse("recall@20>=95% of ips")
    search = begin(tmp_path / "t", settings(log, "lightgcn", "ips", constraints=[held], trials=9))
    assert not search.run(Limits(6.0, share_out=True))
    assert search.journal.frozen == {"ips": 3}
    chosen = choose(search)
    assert chosen is not None
    assert [len(each.counted) for each in chosen.methods] == [3, 3]


def test_nothing_is_chosen_before_every_method_had_a_trial(
    log: Path, tmp_path: Path, made_up: MadeUpFactory, clock: Clock
) -> None:
    made_up(clock.tick)
    search = begin(tmp_path / "t", settings(log, "lightgcn", "ips"))
    assert not search.run(Limits(1.0))
    assert choose(search) is None


def test_other_data_are_refused(log: Path, tmp_path: Path) -> None:
    begin(tmp_path / "t", settings(log, "mostpop"))
    log.write_text(log.read_text() + "u00,i99\n")
    with pytest.raises(RunError, match="is not what it was"):
        Search.go_on(tmp_path / "t")
