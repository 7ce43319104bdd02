"""`caged results`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.invoke import caged, contents, refused, refused_without_a_trace, train
from tests.cli.terminal import on_terminal
from tests.products.results.recorded import record, several

METRIC = ("--metrics", "recall@20")


def test_records_move_between_machines(log_csv: Path, tmp_path: Path) -> None:
    for seed in ("1", "2"):
        train(log_csv, tmp_path / f"run{seed}", "--seed", seed, "--record", tmp_path / "results", method="mostpop")
    outcome = caged("results", "pack", "results", "-o", "moved.tar.gz", cwd=tmp_path)
    assert outcome == (0, "", "2 records packed into moved.tar.gz\n")
    outcome = caged("results", "unpack", "moved.tar.gz", "--into", "copy", cwd=tmp_path)
    assert outcome == (0, "", "2 records unpacked into copy\n")
    assert contents(tmp_path / "copy") == contents(tmp_path / "results")
    [changed, _] = sorted((tmp_path / "copy").rglob("*.json"))
    changed.write_text("{}")
    refused(caged("results", "unpack", "moved.tar.gz", "--into", "copy", cwd=tmp_path), "--overwrite")
    assert changed.read_text() == "{}"
    assert caged("results", "unpack", "moved.tar.gz", "--into", "copy", "--overwrite", cwd=tmp_path).code == 0
    assert contents(tmp_path / "copy") == contents(tmp_path / "results")
    assert caged("results", "pack", "results", cwd=tmp_path).code == 0
    assert (tmp_path / "results.tar.gz").read_bytes() == (tmp_path / "moved.tar.gz").read_bytes()


# ---------------------------------------------------------------- table


def test_a_table_is_printed_written_and_given_as_json(tmp_path: Path) -> None:
    several(tmp_path / "results", {("a", "lightgcn"): 0.1, ("a", "ips"): 0.2})
    printed = caged("results", "table", "results", "--metrics", "recall@20", cwd=tmp_path)
    assert printed.code == 0, printed.err
    assert "IPS        0.2000*¹" in printed.out
    written = caged("results", "table", "results", "--latex", "-o", "table.tex", *METRIC, cwd=tmp_path)
    assert (written.out, written.err) == ("", "table: table.tex\n")
    shown = caged("results", "table", "results", "--latex", *METRIC, cwd=tmp_path)
    without_command = [text.split("\n", 1)[1] for text in (shown.out, (tmp_path / "table.tex").read_text())]
    assert without_command[0] == without_command[1]
    (table,) = json.loads(caged("results", "table", "results", "--json", *METRIC, cwd=tmp_path).out)["tables"]
    assert table["rows"]["IPS"][0]["sign"] == "better"


def test_latex_on_a_terminal_is_not_broken_into_lines(tmp_path: Path) -> None:
    several(tmp_path / "results", {("a", "lightgcn"): 0.1, ("a", "ips"): 0.2})
    arguments = ("results", "table", "results", "--latex", *METRIC)
    assert on_terminal(40, *arguments, cwd=tmp_path).out == caged(*arguments, cwd=tmp_path).out


def test_two_protocols_give_two_tables_with_labels_of_their_own(tmp_path: Path) -> None:
    for protocol in ("honest", "paper"):
        record(tmp_path / "results", "a", "ips", protocol=protocol)
    text = caged("results", "table", "results", "--latex", cwd=tmp_path).out
    assert r"\label{tab:results-honest}" in text
    assert r"\label{tab:results-paper}" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--latex", "--markdown"), "choose one"),
        (("-o", "table.tex"), "add --latex or --markdown"),
        (("--latex", "-o", "nowhere/table.tex"), "cannot write --out nowhere/table.tex"),
        (("--methods", "none"), "unknown method 'none'"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    record(tmp_path / "results", "a", "ips")
    refused(caged("results", "table", "results", *options, cwd=tmp_path), words)


@pytest.mark.parametrize("command", [["table", ".", "--latex"], ["pack", "."]])
def test_no_output_takes_the_place_of_a_record(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "record.json").touch()
    refused_without_a_trace(tmp_path, ["results", *command, "-o", "record.json"], "the same command reads it")
