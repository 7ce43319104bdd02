"""The table on a terminal, in Markdown and in LaTeX, which compiles."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from caged.products.results.reading import read_results
from caged.products.results.table import ResultsTable, results_tables
from caged.products.results.text import caption, results_latex, results_markdown, results_text
from tests.products.results.recorded import several

VALUES = {("epinions-caged", "lightgcn"): 0.1, ("epinions-caged", "caged-a_b"): 0.2, ("ours_1", "lightgcn"): 0.3}
METRICS = ["recall@20", "delta_gap@20"]
PAPER = r"""\documentclass{article}
\usepackage{booktabs,graphicx}
\begin{document}
Table~\ref{tab:results}.
\input{table}
\end{document}
"""


def table(root: Path, seeds: tuple[int, ...] = (1, 2, 3, 4, 5)) -> ResultsTable:
    (found,) = results_tables(read_results(several(root, VALUES, seeds)), METRICS)
    return found


def test_a_terminal_gets_a_table_per_dataset(tmp_path: Path) -> None:
    first, second = results_text(table(tmp_path))
    assert first.title == "Epinions, protocol honest"
    assert first.headers == ["method", "Recall@20", "Delta gap@20"]
    assert first.rows == [["LightGCN", "0.1000 ²", "-0.1000 ¹"], ["CAGED (a b)", "0.2000*¹", "-0.2000 ²"]]
    assert [row[0] for row in second.rows] == ["LightGCN"]


def test_markdown_has_bold_underline_stars_and_true_minus_signs(tmp_path: Path) -> None:
    text = results_markdown(table(tmp_path), "caged results table", intervals=True)
    assert "| CAGED (a b) | **0.2000 ± 0.0020**\\* | <u>\u22120.2000 ± 0.0020</u> | - | - |" in text
    assert "Student's t" in text


def test_latex_has_groups_bold_underline_stars_minus_signs_and_a_label(tmp_path: Path) -> None:
    text = results_latex(table(tmp_path), "caged results table", label="tab:main")
    assert r"\label{tab:main}" in text
    assert r" & \multicolumn{2}{c}{Epinions} & \multicolumn{2}{c}{ours\_1} \\" in text
    assert r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}" in text
    assert r"CAGED (a b) & \textbf{0.2000}$^{*}$ & \underline{$-$0.2000} & -- & -- \\" in text


def test_a_name_in_brackets_is_no_argument_of_the_line_before(tmp_path: Path) -> None:
    found = table(tmp_path)
    renamed = replace(found, rows={f"[{name}]": cells for name, cells in found.rows.items()})
    assert "\n{}[CAGED (a b)] & " in results_latex(renamed, "caged results table", label="tab:main")


def test_the_caption_says_what_the_marks_rest_on(tmp_path: Path) -> None:
    assert "Welch's t over seeds, p < 0.05 after Holm's correction for 2 tests," in caption(table(tmp_path / "a"))
    few = caption(table(tmp_path / "b", seeds=(1, 2, 3)))
    assert "No stars: with fewer than 5 seeds per method nothing is tested." in few
    assert "mean over 3 seeds" in few


@pytest.mark.parametrize("intervals", [False, True])
def test_the_latex_compiles(tmp_path: Path, intervals: bool) -> None:
    program = shutil.which("pdflatex")
    if program is None or not shutil.which("kpsewhich"):
        pytest.skip("pdflatex is not installed here, so nothing can be compiled")
    if subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False).returncode:
        pytest.skip("the LaTeX package booktabs is not installed here, so nothing can be compiled")
    found = table(tmp_path / "results")
    text = results_latex(found, "caged results table", label="tab:results", intervals=intervals)
    (tmp_path / "table.tex").write_text(text, encoding="utf-8")
    (tmp_path / "paper.tex").write_text(PAPER, encoding="utf-8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(2):  # the second time the label is known
        made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout
    assert "undefined" not in made.stdout
    assert "Overfull" not in made.stdout
