"""The trials of a search judged by another goal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from caged.errors import CagedError, ConfigError, RunError
from caged.files import read_sealed_json
from caged.products.tune import (
    Answer,
    Constraint,
    Objective,
    answer_json,
    answer_sentences,
    attempt,
    judge_again,
    resume_tune,
    start_tune,
    told_tune,
)
from caged.products.tune.journal import Journal, Setting
from caged.products.tune.page import answer_html
from caged.products.tune.record import record_json
from tests.cli.invoke import contents
from tests.page.pages import check_page
from tests.products.tune.answered import CALL
from tests.products.tune.tuned import MadeUp, settings, write_log

NICHE = Objective("recall@20/niche")
HELD = Constraint.parse("recall@20>=90% of lightgcn")


def numbers(answer: Answer) -> dict[str, int | None]:
    """Which trial each method has."""
    return {one.method: None if one.trial is None else one.trial.number for one in answer.choice.methods}


# ---------------------------------------------------------------- a search with tests


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ended search for recall@20: its trials are made up, its tests are not."""
    world = tmp_path_factory.mktemp("searched")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(attempt, "run_trial", MadeUp())
        start_tune(settings(write_log(world), "lightgcn", "ips", "mostpop", seeds=2), world / "first", command="caged")
    return world / "first"


def test_the_same_trials_and_another_choice(searched: Path, tmp_path: Path) -> None:
    before = contents(searched)
    answer = judge_again(searched, tmp_path / "niche", NICHE)
    assert Journal.read(tmp_path / "niche").trials == Journal.read(searched).trials
    old = told_tune(searched)
    for first, second in zip(old.choice.methods, answer.choice.methods, strict=True):
        recalls = [(trial.metrics or {})["recall@20"] for trial in first.counted]
        assert first.trial == first.counted[recalls.index(max(recalls))]  # niche recall is 1 less recall
        assert second.trial == second.counted[recalls.index(min(recalls))]
    assert answer.complete
    assert contents(searched) == before


def test_what_was_tested_is_kept_with_its_users_and_the_rest_is_left(searched: Path, tmp_path: Path) -> None:
    answer = judge_again(searched, tmp_path / "niche", NICHE)
    assert answer.tests.tuned.keys() == {"mostpop"}  # it has one setting
    assert answer.tests.left == 4  # two methods, two seeds
    (new,), (old,) = answer.tests.tuned["mostpop"], told_tune(searched).tests.tuned["mostpop"]
    assert (new.metrics, new.epochs, new.seconds) == (old.metrics, old.epochs, old.seconds)
    assert new.users == tmp_path / "niche" / "users" / "mostpop-seed1"
    assert contents(tmp_path / "niche" / "users") == {
        name: content for name, content in contents(searched / "users").items() if name.startswith("mostpop")
    }


def test_to_go_on_tests_only_what_is_left(searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge_again(searched, tmp_path / "niche", NICHE)
    made = MadeUp()
    monkeypatch.setattr(attempt, "run_trial", made)
    answer = resume_tune(tmp_path / "niche")
    assert made.trained == []
    tested = sorted(path.name for path in (tmp_path / "niche" / "runs").iterdir())
    assert tested == ["ips-seed1", "ips-seed2", "lightgcn-seed1", "lightgcn-seed2"]
    assert answer.tests.left == 0
    assert answer.leads
    assert all(lead.users is not None for lead in answer.leads)
    assert answer.made_for == "maximise recall@20"
    assert len(resume_tune(tmp_path / "niche").calls) == 3  # the search, the judging, the tests; nothing since


def test_the_same_goal_gives_the_same_answer(searched: Path, tmp_path: Path) -> None:
    folder = tmp_path / "same"
    found = answer_json(judge_again(searched, folder))
    wanted = json.loads(json.dumps(answer_json(told_tune(searched))).replace(str(searched), str(folder)))
    assert found.pop("calls")[:-1] == wanted.pop("calls")
    assert json.loads(json.dumps(found)) == wanted
    assert found["trials_made_for"] is None
    assert contents(folder / "users") == contents(searched / "users")


def test_the_folder_is_like_that_of_any_search(searched: Path, tmp_path: Path) -> None:
    answer = judge_again(searched, tmp_path / "niche", NICHE, command="caged tune again")
    assert read_sealed_json(tmp_path / "niche" / "tune.json") == json.loads(json.dumps(answer_json(answer)))
    preset = (tmp_path / "niche" / "presets" / "ips.toml").read_text(encoding="utf-8")
    assert f"--preset {tmp_path / 'niche' / 'presets' / 'ips.toml'}" in preset
    assert [call["command"] for call in answer.calls] == ["caged", "caged tune again"]
    assert answer.devices == told_tune(searched).devices  # nothing was trained here
    assert answer.dataset == told_tune(searched).dataset


def test_nothing_is_left_behind_where_writing_fails(
    searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(RunError, match="No space left on device"):
        judge_again(searched, tmp_path / "niche", NICHE)
    assert contents(tmp_path) == {}


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """A search with nothing to search: every goal chooses what is tested."""
    space = tmp_path / "space.toml"
    space.write_text("[ease]\n", encoding="utf-8")
    start_tune(settings(write_log(tmp_path), "mostpop", "ease", space_file=space), tmp_path / "first")
    return tmp_path / "first"


@pytest.mark.parametrize("wish", [Objective("ndcg@20"), Objective("pop_reo@20", maximise=False)])
def test_users_of_another_metric_are_taken_from_the_runs_where_these_are(
    wish: Objective, fixed: Path, tmp_path: Path
) -> None:
    answer = judge_again(fixed, tmp_path / "near", wish)
    assert answer.tests.left == 0
    assert wish.key in {lead.key for lead in answer.leads if lead.users is not None}
    shutil.rmtree(fixed / "runs")
    answer = judge_again(fixed, tmp_path / "far", wish)
    assert (dict(answer.tests.tuned), answer.tests.left) == ({}, 2)
    assert not (tmp_path / "far" / "users").exists()
    assert "still to be made and tested: 2." in answer_html(answer, "caged tune show t")  # not: it is not closed
    assert "On the test part" not in answer_sentences(answer)[0]


def test_a_metric_of_all_lists_together_needs_no_users(fixed: Path, tmp_path: Path) -> None:
    shutil.rmtree(fixed / "runs")
    answer = judge_again(fixed, tmp_path / "gini", Objective("gini@20", maximise=False))
    assert answer.tests.left == 0
    assert {lead.key: lead.users is None for lead in answer.leads} == {
        "gini@20": True,
        "recall@20": False,
        "recall@20/niche": False,
    }


# ---------------------------------------------------------------- journals that are made up


class Told:
    """The journal of a search that never was; a pair is what a trial reached, recall@20 and niche recall."""

    def __init__(self, folder: Path, *methods: str, **options: Any) -> None:
        folder.mkdir()
        self.journal = Journal(folder / "journal.jsonl")
        asked = settings(Path("log.csv"), *(methods or ("lightgcn", "ips")), **options)
        self.journal.write("begin", settings=asked.to_json(), data={"train": "x"})
        self.journal.write("call", **CALL)

    def tried(self, method: str, *reached: tuple[float, float] | None) -> Told:
        for number, pair in enumerate(reached, start=len(self.journal.of(method))):
            whose = {"method": method, "trial": number}
            self.journal.write("start", **whose, values={"train.learning_rate": 0.001 * (number + 1)})
            metrics = None if pair is None else dict(zip(("recall@20", "recall@20/niche"), pair, strict=True))
            status = {"status": "failed", "reason": "nan"} if metrics is None else {"status": "complete"}
            self.journal.write("end", **whose, **status, metrics=metrics, epochs=2, best_epoch=1, seconds=0.5)
        return self

    def closed(self, rounds: int) -> Told:
        self.journal.write("closed", rounds=rounds)
        return self

    def tested(self, method: str, setting: Setting, recall: float | None, seed: int = 1) -> Told:
        said = {"reason": "the loss became nan"} if recall is None else {"metrics": {"recall@20": recall}}
        self.journal.write("tested", method=method, setting=setting, seed=seed, **said, epochs=2, seconds=0.5)
        if recall is not None:
            name = f"{method}-seed{seed}" if setting == "tuned" else f"{method}-default-seed{seed}"
            users = self.journal.path.parent / "users" / name
            users.mkdir(parents=True)
            (users / "made.up").write_text(str(recall))
        return self


def test_a_reference_is_frozen_and_holds_the_others_to_its_best(tmp_path: Path) -> None:
    told = Told(tmp_path / "a", trials=2)
    told.tried("lightgcn", (0.5, 0.1), (0.3, 0.4)).tried("ips", (0.46, 0.2), (0.4, 0.5)).closed(2)
    answer = judge_again(tmp_path / "a", tmp_path / "b", NICHE, [HELD])
    (limit,) = answer.choice.goal.limits
    assert limit.value == pytest.approx(0.9 * 0.5)
    assert numbers(answer) == {"lightgcn": 0, "ips": 0}
    assert Journal.read(tmp_path / "b").frozen == {"lightgcn": 2}
    assert numbers(judge_again(tmp_path / "b", tmp_path / "c", NICHE)) == {"lightgcn": 1, "ips": 1}
    assert Journal.read(tmp_path / "c").frozen == {}


def test_a_reference_that_made_more_trials_than_count_stays_what_it_was(tmp_path: Path) -> None:
    told = Told(tmp_path / "a", trials=3, constraints=[HELD]).tried("lightgcn", (0.4, 0.1), (0.3, 0.4), (0.5, 0.1))
    told.journal.write("frozen", method="lightgcn", trials=3)
    told.tried("ips", (0.4, 0.2))
    told.journal.write("start", method="ips", trial=1, values={})  # cut off
    told.closed(1)
    for name, wanted in (("same", [HELD]), ("harder", [Constraint.parse("recall@20>=95% of lightgcn")])):
        answer = judge_again(tmp_path / "a", tmp_path / name, constraints=wanted)
        assert answer.choice.goal.limits[0].value == pytest.approx(wanted[0].number * 0.5)
        assert (answer.choice.rounds, answer.choice.dropped, answer.complete) == (1, 2, False)
        assert ("ips", 1) not in Journal.read(tmp_path / name).trials
    other = [Constraint.parse("recall@20>=90% of ips")]  # only whole rounds count for whoever was no reference
    assert judge_again(tmp_path / "a", tmp_path / "other", constraints=other).choice.rounds == 1


def test_trials_that_failed_were_pruned_or_were_killed_stay_what_they_are(tmp_path: Path) -> None:
    told = Told(tmp_path / "a", "lightgcn", trials=3).tried("lightgcn", (0.5, 0.1), None)
    whose = {"method": "lightgcn", "trial": 2}
    told.journal.write("start", **whose, values={"train.learning_rate": 0.5})
    told.journal.write("lost", **whose, why="killed")
    told.journal.write("start", **whose, values={"train.learning_rate": 0.5})
    ended = {"epochs": 1, "best_epoch": 1, "seconds": 0.1, "saved": 1, "curve": {"epochs": [1]}}
    told.journal.write("end", **whose, status="pruned", reason="behind", **ended)
    answer = judge_again(tmp_path / "a", tmp_path / "b", NICHE)
    (found,) = answer.choice.methods
    assert (found.failed, found.pruned, found.saved, numbers(answer)) == (1, 1, 1, {"lightgcn": 0})
    assert Journal.read(tmp_path / "b").trials == told.journal.trials
    assert told.journal.trials["lightgcn", 2].kills == 1


def test_a_search_that_is_complete_and_not_closed_is_closed_by_it(tmp_path: Path) -> None:
    Told(tmp_path / "a", trials=1).tried("lightgcn", (0.5, 0.1)).tried("ips", (0.4, 0.2))
    answer = judge_again(tmp_path / "a", tmp_path / "b", NICHE)
    assert (answer.complete, dict(answer.tests.tuned), answer.tests.left) == (True, {}, 2)
    assert Journal.read(tmp_path / "b").closed


def test_tests_of_the_defaults_are_those_of_the_first_trial(tmp_path: Path) -> None:
    told = Told(tmp_path / "a", "lightgcn", trials=2).tried("lightgcn", (0.1, 0.3), (0.2, 0.2)).closed(2)
    told.journal.write("test_defaults")
    told.tested("lightgcn", "tuned", 0.22).tested("lightgcn", "default", 0.11)
    chosen = judge_again(tmp_path / "a", tmp_path / "b", NICHE)  # the defaults
    assert [run.value("recall@20") for run in chosen.tests.tuned["lightgcn"]] == [0.11]
    assert chosen.tests.default == chosen.tests.tuned
    assert chosen.tests.left == 0
    assert contents(tmp_path / "b" / "users") == {"lightgcn-seed1": None, "lightgcn-seed1/made.up": b"0.11"}
    beside = judge_again(tmp_path / "b", tmp_path / "c")  # trial 1, whose tests this folder does not have
    assert beside.tests.tuned == {}
    assert [run.value("recall@20") for run in beside.tests.default["lightgcn"]] == [0.11]
    assert beside.tests.left == 1
    assert (tmp_path / "c" / "users" / "lightgcn-default-seed1").is_dir()


def test_some_seeds_may_be_tested_and_a_failure_is_a_test(tmp_path: Path) -> None:
    told = Told(tmp_path / "a", "lightgcn", trials=1, seeds=3).tried("lightgcn", (0.1, 0.3)).closed(1)
    told.tested("lightgcn", "tuned", 0.2, seed=1).tested("lightgcn", "tuned", None, seed=2)
    answer = judge_again(tmp_path / "a", tmp_path / "b", NICHE)
    assert [(run.seed, run.reason) for run in answer.tests.tuned["lightgcn"]] == [(1, None), (2, "the loss became nan")]
    assert answer.tests.left == 1
    assert "default" not in {setting for _, setting, _ in Journal.read(tmp_path / "b").tested}


# ---------------------------------------------------------------- what the trials were made for


@pytest.fixture
def made(tmp_path: Path) -> Path:
    told = Told(tmp_path / "a", trials=2, constraints=[HELD, Constraint.parse("recall@20>=0.01")])
    told.tried("lightgcn", (0.5, 0.1), (0.3, 0.4))
    told.journal.write("frozen", method="lightgcn", trials=2)
    told.tried("ips", (0.46, 0.2), (0.4, 0.5)).closed(2)
    return tmp_path / "a"


FIRST = "maximise recall@20 subject to recall@20>=90% of lightgcn and recall@20>=0.01"


def test_everybody_is_told_what_the_trials_were_made_for(made: Path, tmp_path: Path) -> None:
    answer = judge_again(made, tmp_path / "b", NICHE)
    assert answer_json(answer)["trials_made_for"] == record_json(answer)["trials_made_for"] == FIRST
    sentence = f"The trials were made to {FIRST}; here they are judged by another goal."
    assert answer_sentences(answer)[1:] == [sentence, "Trainings that are still to be made and tested: 2."]
    page = answer_html(answer, "caged tune show b")
    check_page(page)
    assert sentence.replace(">", "&gt;") in page
    nobody = judge_again(made, tmp_path / "c", NICHE, [Constraint.parse("recall@20>=0.9")])
    assert sentence in answer_sentences(nobody)
    assert answer_json(told_tune(made))["trials_made_for"] is None


def test_the_first_goal_is_told_however_often_they_are_judged(made: Path, tmp_path: Path) -> None:
    judge_again(made, tmp_path / "b", NICHE)
    assert judge_again(tmp_path / "b", tmp_path / "c", Objective("recall@20/niche"), [HELD]).made_for == FIRST
    first = [HELD, Constraint.parse("recall@20>=0.01")]
    back = judge_again(tmp_path / "c", tmp_path / "d", constraints=first)
    assert (back.made_for, numbers(back)) == (None, numbers(told_tune(made)))
    assert judge_again(tmp_path / "d", tmp_path / "e", NICHE).made_for == FIRST


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("objective", "constraint", "kind", "words"),
    [
        ("recall@10", None, ConfigError, r"not measured in recall@10; choose one of recall@20, recall@20/niche$"),
        (None, "gini@20<=0.8", ConfigError, "not measured in gini@20; choose one of"),
        (None, "recall@20>=9% of ease", ConfigError, "names ease, which was not searched in .*one of lightgcn, ips$"),
        (None, "recall@20>=9% of ips", ConfigError, "no trial of ips succeeded"),
    ],
)
def test_a_goal_that_does_not_fit_is_refused(
    objective: str | None, constraint: str | None, kind: type[CagedError], words: str, tmp_path: Path
) -> None:
    Told(tmp_path / "a", trials=1).tried("lightgcn", (0.5, 0.1)).tried("ips", None).closed(1)
    before = contents(tmp_path)
    wanted = [] if constraint is None else [Constraint.parse(constraint)]
    with pytest.raises(kind, match=words):
        judge_again(tmp_path / "a", tmp_path / "new" / "b", Objective(objective) if objective else None, wanted)
    assert contents(tmp_path) == before


def test_a_search_that_has_not_ended_is_refused(tmp_path: Path) -> None:
    told = Told(tmp_path / "a", trials=2).tried("lightgcn", (0.5, 0.1))
    for _ in range(2):  # before the first round is whole, and after
        with pytest.raises(RunError, match=r"has not ended; end it first with: caged tune --resume"):
            judge_again(tmp_path / "a", tmp_path / "b", NICHE)
        told.tried("ips", (0.4, 0.2))
    assert not (tmp_path / "b").exists()


def test_a_search_without_any_numbers_is_refused(tmp_path: Path) -> None:
    Told(tmp_path / "a", trials=1).tried("lightgcn", None).tried("ips", None).closed(1)
    with pytest.raises(RunError, match=r"no trial in .* succeeded"):
        judge_again(tmp_path / "a", tmp_path / "b", NICHE)


@pytest.mark.parametrize("name", ["a", "mine"])
def test_a_folder_that_holds_something_is_refused(name: str, made: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x.txt").write_text("x")
    before = contents(tmp_path)
    with pytest.raises(RunError, match="is not empty"):
        judge_again(made, tmp_path / name, NICHE)
    assert contents(tmp_path) == before
