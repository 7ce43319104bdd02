"""`caged evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.invoke import caged, contents, refused_without_a_trace, train


def test_evaluating_again_gives_the_same_numbers(finished_run: Path) -> None:
    before = contents(finished_run)
    outcome = caged("evaluate", finished_run, "--json")
    printed = json.loads(outcome.out)
    stored = json.loads((finished_run / "metrics.json").read_text())
    assert (printed["protocol"], printed["part"]) == ("honest", "test")
    assert printed["metrics"] == stored["metrics"]
    assert printed["users"] == stored["users"]
    assert contents(finished_run) == before


def test_evaluate_at_other_lengths_and_on_the_other_part(finished_run: Path) -> None:
    outcome = caged("evaluate", finished_run, "-k", "5,10")
    assert "recall@5" in outcome.out
    assert "recall@10" in outcome.out
    assert "recall@20" not in outcome.out
    assert "lightgcn, protocol honest, test part" in outcome.out
    printed = json.loads(caged("evaluate", finished_run, "--part", "valid", "--json").out)
    best = json.loads((finished_run / "run.json").read_text())["training"]["best_validation"]
    assert printed["metrics"]["recall@20"] == best


def test_evaluate_validation_under_paper(released: Path, tmp_path: Path) -> None:
    train(released, tmp_path / "run", "--protocol", "paper", method="mostpop")
    outcome = caged("evaluate", tmp_path / "run", "--part", "valid")
    assert outcome.code == 2
    assert "no validation part; use --part test" in outcome.error


def test_no_page_in_the_run_that_is_read(finished_run: Path) -> None:
    arguments = ["evaluate", ".", "--html", "metrics.json"]
    refused_without_a_trace(finished_run, arguments, "cannot write --html metrics.json: the same command reads")
