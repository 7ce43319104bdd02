"""`caged tune`: the answer, what is refused, and how a search goes on."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from caged.files import read_sealed_json
from tests.cli.invoke import caged, refused, refused_without_a_trace
from tests.products.tune.tuned import write_log

CLOSED = ("--methods", "mostpop,ease", "--trials", "3", "--device", "cpu", "--threads", "1")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    write_log(tmp_path)
    return tmp_path


def test_the_answer(world: Path) -> None:
    outcome = caged("tune", "--data", "log.csv", *CLOSED, "--out", "tunes/first", cwd=world)
    assert outcome.code == 0, outcome.err
    assert " wins: recall@20 " in outcome.out
    assert "tuned against default" in outcome.out
    assert "3 trials of at most 200 epochs, seed 1" in outcome.out
    assert "all settings tried" in outcome.out
    assert "caged train --data log.csv --method" in outcome.out
    assert (world / "tunes/first/presets/ease.toml").is_file()


def test_the_answer_as_json_is_the_file(world: Path) -> None:
    arguments = ("--minimise", "gini@20", "--subject-to", "recall@20>=90% of mostpop", "--json")
    outcome = caged("tune", "--data", "log.csv", *CLOSED, *arguments, "--out", "t", cwd=world)
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert told == read_sealed_json(world / "t" / "tune.json")
    assert told["subject_to"] == ["recall@20>=90% of mostpop"]
    assert [told["methods"][name]["trials"] for name in ("mostpop", "ease")] == [1, 3]
    assert len(told["methods"]["ease"]["record"]) == 3


def test_a_search_without_time_says_how_to_go_on_and_can_be_finished(world: Path) -> None:
    stopped = caged("tune", "--data", "log.csv", *CLOSED, "--budget", "0.000001s", "--out", "t", cwd=world)
    assert stopped.code == 0
    assert "caged tune --resume t" in stopped.err
    refused(caged("tune", "--resume", "t", "--finish", cwd=world), "before every method had a trial")
    done = caged("tune", "--resume", "t", "--json", cwd=world)
    assert done.code == 0, done.err
    assert json.loads(done.out)["complete"]
    again = caged("tune", "--resume", "t", "--finish", "--json", cwd=world)
    assert json.loads(again.out) == json.loads(done.out)


def test_the_answer_again_its_tables_its_record_and_its_preset(world: Path) -> None:
    arguments = ("--record", "results", "--test-defaults", "--json", "--out", "t")
    first = caged("tune", "--data", "log.csv", *CLOSED, *arguments, cwd=world)
    assert first.code == 0, first.err
    page = (world / "t" / "tune.html").read_bytes()
    (world / "t" / "tune.html").unlink()
    again = caged("tune", "show", "t", "--json", "--markdown", "t.md", "--latex", "t.tex", cwd=world)
    assert again.code == 0, again.err
    assert json.loads(again.out) == json.loads(first.out)
    assert (world / "t" / "tune.html").read_bytes() == page
    assert "| ease | recall@20 |" in (world / "t.md").read_text(encoding="utf-8")
    assert r"\toprule" in (world / "t.tex").read_text(encoding="utf-8")
    preset = caged("tune", "preset", "results/tunes/log.json", "-o", "tuned_log.toml", cwd=world)
    assert preset.code == 0, preset.err
    trained = ("--preset", "tuned_log.toml", "--device", "cpu", "--threads", "1", "--out", "r", "--json", "--no-report")
    run = caged("train", "--data", "log.csv", "--method", "ease", *trained, cwd=world)
    assert run.code == 0, run.err
    tested = json.loads(first.out)["methods"]["ease"]["test"][0]["metrics"]
    assert json.loads(run.out)["metrics"]["recall@20"] == tested["recall@20"]


@pytest.fixture
def ended(world: Path) -> Path:
    """With a search in the folder t."""
    outcome = caged("tune", "--data", "log.csv", *CLOSED, "--out", "t", "--json", cwd=world)
    assert outcome.code == 0, outcome.err
    return world


def test_another_goal_for_the_same_trials(ended: Path) -> None:
    shutil.rmtree(ended / "t" / "runs")  # nothing is left of the users but their recall
    goal = ("--maximise", "ndcg@20", "--subject-to", "recall@20>=50% of mostpop")
    again = caged("tune", "again", "t", *goal, "--out", "new/t", "--record", "r", "--variant", "ndcg", cwd=ended)
    assert again.code == 0, again.err
    assert "The trials were made to maximise recall@20; here they are judged by another goal." in again.out
    assert "to train and test what is chosen now: caged tune --resume new/t" in again.err
    assert "--preset new/t/presets/" in again.out
    assert (ended / "new" / "t" / "tune.html").is_file()
    record = json.loads((ended / "r" / "tunes" / "log-ndcg.json").read_text(encoding="utf-8"))
    assert [call["command"].split()[1:3] for call in record["calls"]] == [["tune", "--data"], ["tune", "again"]]
    stopped = caged("tune", "--resume", "new/t", "--budget", "0.000001s", cwd=ended)
    assert "stopped before all tests were made; continue with: caged tune --resume new/t" in stopped.err
    assert "--finish" not in stopped.err  # there is no search to end
    done = caged("tune", "--resume", "new/t", "--json", cwd=ended)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["tested"], told["trials_made_for"]) == (True, "maximise recall@20")
    assert (told["goal"]["objective"], told["subject_to"]) == ("ndcg@20", ["recall@20>=50% of mostpop"])


def test_another_goal_as_json_is_the_file(ended: Path) -> None:
    again = caged("tune", "again", "t", "--out", "same", "--json", cwd=ended)
    assert again.code == 0, again.err
    told = json.loads(again.out)
    assert told == read_sealed_json(ended / "same" / "tune.json")
    assert (told["tested"], told["tests_left"], told["trials_made_for"]) == (True, 0, None)
    assert "--resume" not in again.err  # nothing is left to test
    shown = caged("tune", "show", "same", "--json", cwd=ended)
    assert json.loads(shown.out) == told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--maximise", "recall@10", "--out", "new"), "not measured in recall@10; choose one of "),
        (("--maximise", "gini@20", "--out", "new"), "use --minimise gini@20"),
        (("--maximise", "recal@20", "--out", "new"), "did you mean"),
        (("--maximise", "recall@20", "--minimise", "gini@20", "--out", "new"), "two objectives"),
        (("--subject-to", "recall@20>=99% of lightgcn", "--out", "new"), "names lightgcn, which was not searched in t"),
        (("--subject-to", "recall@20", "--out", "new"), "--subject-to is 'recall@20'; write it as"),
        (("--out", "t"), "output folder t is not empty"),
        (("--out", "log.csv"), "is a file"),
        (("--out", "new", "--variant", "niche"), "say where to write it with --record"),
        (("--out", "new", "--record", "log.csv"), "cannot write records"),
    ],
)
def test_a_goal_that_does_not_fit_is_refused(arguments: tuple[str, ...], words: str, ended: Path) -> None:
    refused_without_a_trace(ended, ["tune", "again", "t", *arguments], words)


def test_the_trials_of_a_search_that_has_not_ended_are_not_judged_again(world: Path) -> None:
    stopped = caged("tune", "--data", "log.csv", *CLOSED, "--budget", "0.000001s", "--out", "t", cwd=world)
    assert stopped.code == 0, stopped.err
    refused_without_a_trace(world, ["tune", "again", "t", "--out", "new"], "the search in t has not ended")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--methods", "ease"), "--data, --methods and --out are needed"),
        (("--data", "log.csv", "--methods", "eas", "--out", "t"), "did you mean 'ease'"),
        (("--data", "log.csv", "--methods", "ease", "--out", "t", "--maximise", "gini@20"), "use --minimise gini@20"),
        (("--data", "log.csv", "--methods", "ease", "--out", "t", "--budget", "soon"), "--budget is 'soon'"),
        (("--data", "log.csv", "--methods", "ease", "--out", "t", "--workers", "0"), "--workers is 0; allowed are"),
        (("--data", "log.csv", "--methods", "ease", "--out", "t", "--maximise", "recall@99"), "99"),
        (("--data", "none.csv", "--methods", "ease", "--out", "t"), "none.csv"),
        (("--data", "log.csv", "--methods", "ease", "--out", "t", "--space", "none.toml"), "cannot read --space"),
        (("--resume", "t", "--trials", "3"), "leave --trials out"),
        (("--resume", "t"), "holds no journal.jsonl"),
        (("show", "t"), "holds no journal.jsonl"),
        (("again", "t", "--out", "new"), "holds no journal.jsonl"),
        (("again", "log.csv", "--out", "new"), "journal.jsonl"),
        (("--data", "log.csv", "--methods", "ease", "--out", "t", "--record", "log.csv"), "cannot write records"),
        (("show", "t", "--latex", "none/t.tex"), "cannot write --latex"),
        (("show", ".", "--latex", "log.csv"), "cannot write --latex log.csv: the same command reads"),
        (("preset", "log.csv"), "not readable JSON"),
        (("preset", "log.csv", "-o", "log.csv"), "cannot write --out log.csv: the same command reads it"),
        (
            (
                "--data",
                "log.csv",
                "--methods",
                "ease",
                "--out",
                "t",
                "--maximise",
                "recall@20",
                "--minimise",
                "gini@20",
            ),
            "two objectives",
        ),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing_behind(arguments: tuple[str, ...], words: str, world: Path) -> None:
    refused_without_a_trace(world, ["tune", *arguments], words)


def test_a_folder_that_is_filled_is_refused(world: Path) -> None:
    (world / "t").mkdir()
    (world / "t" / "mine.txt").write_text("x")
    refused(caged("tune", "--data", "log.csv", *CLOSED, "--out", "t", cwd=world), "not empty")


def test_the_space_of_a_method_is_a_file_that_a_search_takes(world: Path) -> None:
    outcome = caged("tune", "space", "ease", cwd=world)
    assert list(tomllib.loads(outcome.out)) == ["ease"]
    (world / "space.toml").write_text("[ease]\nmethod.ridge = [5.0, 6.0]\n")
    arguments = ("--space", "space.toml", "--json", "--out", "t")
    done = caged("tune", "--data", "log.csv", *CLOSED, *arguments, cwd=world)
    assert done.code == 0, done.err
    record = json.loads(done.out)["methods"]["ease"]["record"]
    assert sorted(trial["values"]["method.ridge"] for trial in record[1:]) == [5.0, 6.0]
    assert json.loads(caged("tune", "space", "mostpop", "--json").out) == {"mostpop": {}}
