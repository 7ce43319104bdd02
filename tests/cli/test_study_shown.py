"""`caged study tables` and `caged study figures`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caged.products.study import read_plan
from tests.cli.invoke import caged, contents, refused, refused_without_a_trace
from tests.products.reproduction.studied import runs_of, small_plan, write_record

PLAN = "plan.toml"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    plan = small_plan(tmp_path)
    for row, value in (("lightgcn", 0.1), ("caged", 0.12)):
        for run in runs_of(plan, row):
            write_record(plan, run, value + 0.001 * run.seed)
    return tmp_path


def test_tables_in_every_form(study: Path) -> None:
    chosen = ("study", "tables", PLAN, "--only", "main,epinions,honest")
    printed = caged(*chosen, cwd=study)
    assert printed.code == 0, printed.err
    assert "CAGED         5  0.1257 (+1.45%)*  0.1230 ± 0.0020 (+19.4% [+17.2, +21.7])*¹\n" in printed.out
    assert "planned runs are finished" in printed.out
    found = json.loads(caged(*chosen, "--json", cwd=study).out)["tables"]
    assert [table["section"] for table in found] == ["main"]
    assert found[0]["rows"][1]["seeds"] == {"honest": 5}
    assert r"\begin{table*}" in caged(*chosen, "--latex", cwd=study).out
    assert caged(*chosen, "--markdown", "-o", "table.md", cwd=study).err == "tables: table.md\n"
    assert (study / "table.md").read_text().startswith("**Epinions, main: Recall@20, all items**")
    assert caged("study", "tables", PLAN, "--html", "tables.html", cwd=study).err == "page: tables.html\n"
    assert "<h1>Small study</h1>" in (study / "tables.html").read_text()


@pytest.mark.parametrize("options", [("--html",), ("--latex", "--out")])
def test_no_tables_in_place_of_the_plan(tmp_path: Path, options: tuple[str, ...]) -> None:
    small_plan(tmp_path)
    refused_without_a_trace(tmp_path, ["study", "tables", PLAN, *options, PLAN], "the same command reads it")


def test_figures_are_written_and_missing_ones_named(study: Path) -> None:
    outcome = caged("study", "figures", PLAN, "--only", "epinions,honest", "-o", "drawn", cwd=study)
    assert outcome.code == 0, outcome.err
    assert outcome.out == "drawn/trade-off-epinions-caged-honest.svg\n"
    assert "note: no learning-epinions-caged-honest: no record holds a learning curve\n" in outcome.err
    assert [path.name for path in (study / "drawn").iterdir()] == ["trade-off-epinions-caged-honest.svg"]
    told = json.loads(caged("study", "figures", PLAN, "-o", "drawn", "--json", cwd=study).out)
    assert told["figures"] == ["drawn/trade-off-epinions-caged-honest.svg"]
    assert "densities-epinions-caged-honest" in told["missing"]


def test_rows_that_a_figure_leaves_out_are_told(study: Path) -> None:
    plan = read_plan(study / PLAN)
    history = [{"stage": "train", "epochs": [1, 2], "values": [0.1, 0.2]}]
    for run in runs_of(plan, "caged"):
        write_record(plan, run, 0.12, history=history)
    chosen = ("study", "figures", PLAN, "--only", "epinions,honest,main", "-o", "drawn")
    said = "LightGCN (no learning curve recorded)"
    assert f"note: learning-epinions-caged-honest leaves out {said}\n" in caged(*chosen, cwd=study).err
    assert json.loads(caged(*chosen, "--json", cwd=study).out)["left_out"] == {"learning-epinions-caged-honest": said}


def test_a_plan_of_which_nothing_is_recorded_yet_has_tables_and_no_figures(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    outcome = caged("study", "tables", PLAN, "--only", "main,epinions,honest", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert "0 of 9 planned runs are finished" in outcome.out.replace("\n", " ")
    outcome = caged("study", "figures", PLAN, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (0, "")
    plan.results.write_text("")
    refused(caged("study", "tables", PLAN, cwd=tmp_path), "results of the plan results is not a folder")


def test_a_protocol_in_only_leaves_the_other_out(study: Path) -> None:
    plan = read_plan(study / PLAN)
    write_record(plan, runs_of(plan, "caged", protocol="paper")[0], 0.1)
    chosen = ("study", "tables", PLAN, "--json", "--only")
    alone, both = (
        json.loads(caged(*chosen, words, cwd=study).out)["tables"][0]
        for words in ("main,epinions,honest", "main,epinions")
    )
    assert {column["source"] for column in alone["columns"]} == {"printed", "honest"}
    assert {column["source"] for column in both["columns"]} == {"printed", "paper", "honest"}


def test_a_damaged_record_is_one_sentence(study: Path) -> None:
    path = study / "results" / "epinions-caged" / "honest" / "lightgcn" / "seed1.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "metrics": {**content["metrics"], "recall@20": "high"}}))
    for command in ("tables", "figures"):
        refused(caged("study", command, PLAN, cwd=study), f"{path.relative_to(study)} is damaged", "'high'")


def test_tables_do_not_count_records_of_a_log_that_has_changed(study: Path) -> None:
    (study / "log.csv").write_text("user_id,item_id\n" + "".join(f"u{n},i{m}\n" for n in range(9) for m in range(6)))
    text = (study / PLAN).read_text().replace('data = "epinions-caged"', 'data = "log.csv"')
    (study / PLAN).write_text(text)
    (study / "results" / "epinions-caged").rename(study / "results" / "log")
    chosen = ("study", "tables", PLAN, "--only", "main,epinions,honest")
    assert "log.csv holds other data than it was made with" in caged(*chosen, cwd=study).out
    drawn = caged("study", "figures", PLAN, "--only", "main,epinions,honest", "-o", "drawn", cwd=study)
    assert "0 of" in drawn.err
    (study / "log.csv").unlink()
    assert "not counted" not in caged(*chosen, cwd=study).out


def test_figures_of_data_that_is_a_path_are_called_as_the_plan_calls_it(study: Path) -> None:
    text = (study / PLAN).read_text().replace('data = "epinions-caged"', 'data = "../logs/epinions-caged"')
    (study / PLAN).write_text(text)
    outcome = caged("study", "figures", PLAN, "--only", "epinions,honest", "-o", "drawn", cwd=study)
    assert outcome.out == "drawn/trade-off-epinions-honest.svg\n", outcome.err
    assert (study / "drawn" / "trade-off-epinions-honest.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tables", "none.toml"), "cannot read plan none.toml"),
        (("tables", PLAN, "--only", "nothing"), "unknown word in --only 'nothing'"),
        (("tables", PLAN, "--latex", "--markdown"), "exclude each other; choose one"),
        (("tables", PLAN, "-o", "x.md"), "add --markdown or --latex"),
        (
            ("tables", PLAN, "--record", PLAN),
            "--record plan.toml is not a folder; give the folder that caged study run",
        ),
        (("figures", PLAN, "--record", PLAN), "--record plan.toml is not a folder"),
        (("tables", PLAN, "--record", "none"), "--record none does not exist"),
        (("figures", PLAN, "--record", "none/deep"), "--record none/deep does not exist"),
        (("figures", PLAN, "--format", "gif"), "--format is 'gif'; allowed: svg, png, pdf"),
    ],
)
def test_bad_input_is_one_sentence(study: Path, arguments: tuple[str, ...], words: str) -> None:
    before = contents(study)
    refused(caged("study", *arguments, cwd=study), words)
    assert contents(study) == before
