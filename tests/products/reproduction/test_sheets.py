"""One table in every form: the same cells, other marks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from caged.products.reproduction.cells import Cell
from caged.products.reproduction.sheets import caption, latex_text, markdown_text, sheets, text_tables
from caged.products.reproduction.tables import StudyTable, study_tables
from tests.products.reproduction.studied import PLAN, records_of, runs_of, small_plan, write_record


@pytest.fixture
def table(tmp_path: Path) -> StudyTable:
    plan = small_plan(tmp_path)
    for row, value in (("lightgcn", 0.1), ("caged", 0.12)):
        users = [value + 0.01 * (place % 7) + (0.001 * (place % 3) if row == "caged" else 0.0) for place in range(50)]
        for run in runs_of(plan, row):
            if run.seed <= 3:
                write_record(plan, run, value + 0.001 * run.seed, users=users)
    write_record(plan, runs_of(plan, "ips")[0], None, status="failed")
    return next(one for one in study_tables(plan, records_of(plan)) if one.name == "main-epinions-caged")


def test_cells_hold_mean_interval_change_and_gaps(table: StudyTable) -> None:
    first, *_ = sheets(table)
    assert first.title == "Epinions, main: Recall@20, all items"
    assert first.headers == ["method", "seeds (paper, honest)", "printed", "paper", "honest"]
    texts = {row[0].text: [cell.text for cell in row[1:]] for row in first.rows}
    assert texts["LightGCN"] == ["0, 3", "0.1239", "not run", "0.1020 ± 0.0025"]
    assert texts["CAGED"] == ["0, 3", "0.1257 (+1.45%)", "not run", "0.1220 ± 0.0025 (+19.6% [+17.4, +21.8])"]
    assert texts["IPS"] == ["0, 0", "0.1253 (+1.13%)", "not run", "failed"]
    best = {row[0].text: (row[-1].best, row[-1].sign) for row in first.rows}
    assert best["CAGED"] == (True, "*")
    assert best["LightGCN"] == (False, "")
    assert sheets(table)[1].headers[2:] == ["printed (100 hits)", "paper (100 hits)", "honest"]
    assert len(sheets(table)) == 6


def test_a_caption_says_what_marks_rest_on(table: StudyTable) -> None:
    said = " ".join(caption(table))
    assert "paired t over users (6 tests), p < 0.05 after Holm's correction for all 6 tests of the table" in said
    assert "Not tested" not in said
    assert "No row has values of caged tune" in said
    assert "IPS: method.eta=0.25" in said
    assert "6 of 12 planned runs are finished; those recorded took 10.5 GPU minutes." in said
    assert "Protocol 'paper' selects the epoch on the test part" in said


def test_a_caption_names_the_rows_that_were_not_tested(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    for row in ("lightgcn", "caged", "ips"):
        run = runs_of(plan, row)[0]
        write_record(plan, run, 0.1, users=None if row == "ips" else [0.1 * (place % 3) for place in range(50)])
    found = study_tables(plan, records_of(plan), only=["main"])
    assert f"whatever the change: under {run.protocol} IPS." in " ".join(caption(found[0]))


def test_without_tests_the_caption_says_why(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    write_record(plan, runs_of(plan, "lightgcn")[0], 0.1)
    found = study_tables(plan, records_of(plan), only=["main"])
    assert "No stars: no row has 5 seeds" in " ".join(caption(found[0]))
    assert "not comparable" in " ".join(caption(found[1]))  # Pinterest


def test_markdown(table: StudyTable) -> None:
    text = markdown_text(table)
    assert "| CAGED | 0, 3 | 0.1257 (+1.45%)\\* | not run | **0.1220 ± 0.0025 (+19.6% [+17.4, +21.8])**\\* |" in text
    assert text.count("**Epinions, main: ") == 6


def test_a_title_of_two_lines_is_one_line_in_every_table(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, PLAN.replace('title = "CAGED"', 'title = "CAGED\\n as  written"'))
    found = study_tables(plan, records_of(plan), only=["main"])[0]
    assert "| CAGED as written | 0, 0 |" in markdown_text(found)
    assert any(row[0] == "CAGED as written" for row in text_tables(found)[0].rows)


def test_a_caption_names_records_that_do_not_count(table: StudyTable) -> None:
    odd = replace(table, not_counted={f"{place}.json": "its seed is 3" for place in range(5)})
    assert (
        "Recorded, but not counted: 0.json (its seed is 3), 1.json (its seed is 3), 2.json (its seed is 3) and 2 more."
        in caption(odd)
    )
    assert not any("not counted" in sentence for sentence in caption(table))


def test_labels_of_data_that_is_a_path_are_its_name_in_the_plan(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, PLAN.replace('data = "epinions-caged"', 'data = "logs/shop.csv"'))
    text = latex_text(study_tables(plan, records_of(plan), only=["main"])[0], "caged study tables plan.toml")
    assert r"\label{tab:main-epinions-all-recall}" in text
    assert "shop.csv" not in text


def test_latex(table: StudyTable) -> None:
    text = latex_text(table, "caged study tables plan.toml")
    assert r"CAGED & 0, 3 & 0.1257 (+1.45\%)$^{*}$ & not run & " in text
    assert r" & \textbf{0.1220 $\pm$ 0.0025 (+19.6\% [+17.4, +21.8])}$^{*}$ \\" in text
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") == 6
    assert len(set(re.findall(r"\\label\{(.*)\}", text))) == 6
    assert "†" not in text


def test_titles_that_latex_would_misread(table: StudyTable) -> None:
    """A bracket or a star behind the end of a line is its argument; two hyphens are a dash, and one is no minus."""
    titles = ["[ours] CAGED", "*new", "2-hop soft-max"]
    rows = tuple(replace(row, title=title) for row, title in zip(table.rows, titles, strict=True))
    blocks = {
        group: tuple(
            (*cells[:-1], replace(cells[-1], change=-0.5)) if isinstance(cells[-1], Cell) else cells for cells in block
        )
        for group, block in table.blocks.items()
    }
    text = latex_text(replace(table, rows=rows, blocks=blocks, settings={"*new": ("--keep 99%",)}), "caged")
    lines = text.splitlines()
    assert sum(line.startswith("{}[ours] CAGED & ") for line in lines) == 6
    assert sum(line.startswith("{}*new & ") for line in lines) == 6
    assert sum(line.startswith("2-hop soft-max & ") for line in lines) == 6
    assert "($-$0.5\\% " in text
    assert r"*new: -{}-keep 99\%." in text
    assert "--keep" not in text


def test_a_terminal_marks_the_best_with_a_digit(table: StudyTable) -> None:
    first, *_ = text_tables(table)
    assert any(cell == "0.1220 ± 0.0025 (+19.6% [+17.4, +21.8])*¹" for row in first.rows for cell in row)
