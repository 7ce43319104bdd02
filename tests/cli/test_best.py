"""`caged best`: the answer, what is refused, and how it goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import caged.cli.best as module
from caged.files import read_sealed_json
from caged.products.best import Wish
from caged.training import Interrupted
from tests.cli.invoke import caged, refused_without_a_trace
from tests.products.tune.tuned import write_log

CPU = ("--device", "cpu", "--threads", "1")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where two settings and two epochs are enough."""

    def quick(*arguments: Any, **options: Any) -> Wish:
        return Wish(*arguments, rounds=2, epochs=2, **options)

    monkeypatch.setattr(module, "Wish", quick)
    write_log(tmp_path)
    return tmp_path


def test_the_answer_and_the_commands_that_follow_it(world: Path) -> None:
    outcome = caged("best", "log.csv", *CPU, cwd=world)
    assert outcome.code == 0, outcome.err
    assert "\nServe " in outcome.out
    assert "against it" in outcome.out
    assert "page: best/report.html" in outcome.err
    commands = [line.split() for line in outcome.out.splitlines() if line.startswith("  caged ")]
    assert [words[1] for words in commands] == ["recommend", "export", "serve"]
    for words in commands[:2]:
        followed = caged(*words[1:], "--device", "cpu", cwd=world)
        assert followed.code == 0, followed.err


def test_the_answer_as_json_is_the_file_also_when_asked_again(world: Path) -> None:
    first = caged("best", "log.csv", *CPU, "--out", "b", "--keep", "90%", "--json", cwd=world)
    assert first.code == 0, first.err
    told = json.loads(first.out)
    assert told == read_sealed_json(world / "b" / "best.json")
    assert told["wish"]["keep"] == 0.9
    again = caged("best", "log.csv", *CPU, "--out", "b", "--keep", "90%", "--json", "--resume", cwd=world)
    assert again.code == 0
    assert json.loads(again.out) == told
    assert "already finished" in again.err
    words = caged("best", "log.csv", *CPU, "--out", "b", "--keep", "90%", "--resume", cwd=world)
    assert told["sentences"][0] in words.out


def test_ctrl_c_says_how_to_go_on(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise Interrupted

    monkeypatch.setattr(module, "find_best", stopped)
    monkeypatch.setattr("sys.argv", ["caged", "best", "my log.csv", "--resume", "--minutes", "3"])
    outcome = caged("best", "my log.csv", "--resume", "--minutes", "3", cwd=world)
    assert outcome.code == 130
    assert "stopped; continue with: caged best 'my log.csv' --minutes 3 --resume" in outcome.err
    assert "note: best does not exist, so there is nothing to go on with: a new search begins" in outcome.err


def test_columns_may_have_other_names(world: Path) -> None:
    text = (world / "log.csv").read_text(encoding="utf-8").replace("user_id,item_id", "Kunde,Artikel")
    (world / "orders.csv").write_text(text, encoding="utf-8")
    columns = ("--user-column", "Kunde", "--item-column", "Artikel")
    outcome = caged("best", "orders.csv", *columns, *CPU, "--json", cwd=world)
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["dataset"]["name"] == "orders"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none.csv",), "none.csv does not exist"),
        (("log.csv", "--minutes", "0"), "--minutes is 0"),
        (("log.csv", "--keep", "most"), "--keep is 'most'"),
        (("log.csv", "--keep", "101%"), "at most 100%"),
        (("log.csv", "--user-column", "who"), "who"),
        (("log.csv", "--split", "time"), "timestamp"),
        (("log.csv", "--split", "fair"), "fair"),
        (("log.csv", "--device", "tpu"), "tpu"),
        (("log.csv", "--out", "log.csv"), "is a file"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(world: Path, arguments: tuple[str, ...], words: str) -> None:
    refused_without_a_trace(world, ["best", *arguments], words)
