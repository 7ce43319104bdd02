"""`caged tune`: the answer, what is refused, and how a search goes on."""

from __future__ import annotations

import json
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
        (("--data", "log.csv", "--methods", "ease", "--out", "t", "--record", "log.csv"), "cannot write records"),
        (("show", "t", "--latex", "none/t.tex"), "cannot write --latex"),
        (("preset", "log.csv"), "not readable JSON"),
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
