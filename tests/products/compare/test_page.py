"""A comparison on paper: the page, its scatter, Markdown and LaTeX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caged.page.scatter import scatter, zoomed_ticks
from caged.page.text_table import latex
from caged.products.compare.comparison import Comparison, compare
from caged.products.compare.page import comparison_html, sentences
from caged.products.compare.tables import closing, comparison_tables
from caged.products.compare.text import comparison_latex, comparison_markdown
from tests.page.pages import check_page
from tests.products.compare.compared import values, write_audit_folder, write_run

COMMAND = "caged compare runs/a runs/b"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "a", "lightgcn")
    write_run(folder / "b", "ips", per_user=values(7, 0.05))
    write_audit_folder(folder / "c", "50% <b>off</b> & more_", per_user=values(7, -0.001))
    return compare([folder / name for name in "abc"])


@pytest.fixture(scope="module")
def of_seeds(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("seeds")
    runs = [
        write_run(folder / f"{method}{seed}", method, per_user=values(seed, shift), seed=seed)
        for method, shift in (("lightgcn", 0.0), ("ips", 0.4))
        for seed in range(5)
    ]
    return compare(runs)


# ---------------------------------------------------------------- words


def test_sentences_say_what_the_tests_say(found: Comparison, of_seeds: Comparison) -> None:
    ips, foreign = sentences(found)
    assert re.fullmatch(
        r"ips against lightgcn: recall@20 rises from 0\.\d{4} to 0\.\d{4} \(\+\d+\.\d%\), more than chance for these "
        r"users; recall@20/niche rises from .*, more than chance for these users\.",
        ips,
    )
    assert "which may be chance" in foreign
    assert "better beyond chance over seeds" in sentences(of_seeds)[0]


def test_what_was_tested_is_said(found: Comparison, of_seeds: Comparison) -> None:
    assert closing(found)[0].startswith("One run per method: the tests are over users")
    assert closing(of_seeds)[0].startswith("Tested over seeds: Welch's t over runs")
    assert closing(found)[-1] == "Not surely beaten in both recall@20 and recall@20/niche: ips."


def test_every_table_names_the_protocol(found: Comparison, of_seeds: Comparison) -> None:
    assert [len(comparison_tables(one)) for one in (found, of_seeds)] == [3, 4]
    assert all(table.title.startswith("protocol honest, log, test part") for table in comparison_tables(of_seeds))
    for table in comparison_tables(found):
        assert table.title.startswith("protocol honest (50% <b>off</b> & more_: not stated), log, test part")
    for table in [*comparison_tables(found), *comparison_tables(of_seeds)]:
        assert {len(row) for row in table.rows} == {len(table.headers)}


def test_values_of_several_runs_have_a_spread(of_seeds: Comparison) -> None:
    row = comparison_tables(of_seeds)[0].rows[0]
    assert row[:2] == ["lightgcn", "5"]
    assert re.fullmatch(r"0\.\d{4} ± 0\.\d{4}", row[2])


# ---------------------------------------------------------------- page


def test_the_page_stands_alone_and_escapes(found: Comparison) -> None:
    page = comparison_html(found, COMMAND)
    check_page(page)
    assert "<b>off" not in page
    assert "50% &lt;b&gt;off" in page
    assert COMMAND in page
    for table in comparison_tables(found):
        for row in table.rows:
            assert all(cell.split(" ")[0].replace("<", "&lt;") in page for cell in row)


def test_the_page_of_seeds(of_seeds: Comparison) -> None:
    page = comparison_html(of_seeds, COMMAND)
    check_page(page)
    assert "Tests over seeds" in page
    assert "Hedges" in page


# ---------------------------------------------------------------- scatter


def draw(points: dict[str, tuple[float, float]], front: tuple[str, ...], width: int = 720) -> str:
    return scatter(points, front, title="t", description="d", x_label="x", y_label="y", width=width)


@pytest.mark.parametrize("width", [720, 350])
def test_every_point_is_drawn_and_named_inside_the_drawing(width: int) -> None:
    points = {f"method {index}": (0.3 + index / 100, 0.2 - index / 200) for index in range(6)}
    drawing = draw(points, tuple(points), width)
    assert drawing.count('class="mark"') == 6
    for name in points:
        assert re.search(rf'<text x="([\d.]+)" y="([\d.]+)"[^>]*font-weight:600">{name}</text>', drawing)
    assert all(0 <= float(x) <= width for x in re.findall(r'<text x="(-?[\d.]+)"', drawing))


def test_names_of_near_points_do_not_lie_on_each_other() -> None:
    drawing = draw({"one": (0.2, 0.2), "two": (0.2, 0.2), "three": (0.2001, 0.2001)}, ("three",))
    places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>(?:one|two|three)<', drawing)
    assert len(set(places)) == 3
    assert "font-weight:600" in drawing


def test_the_front_is_a_staircase() -> None:
    drawing = draw({"a": (0.1, 0.3), "b": (0.2, 0.1), "c": (0.1, 0.05)}, ("a", "b"))
    (path,) = re.findall(r'<path d="(M[^"]*)" style="fill:none', drawing)
    assert [step[0] for step in path.split()] == ["M", "H", "V", "H", "V"]


@pytest.mark.parametrize("values_", [[0.0], [0.0, 0.0], [0.31, 0.34], [-2.0, 5.0], [1e-9, 2e-9], [152.0, 151.4]])
def test_ticks_enclose_the_values(values_: list[float]) -> None:
    levels = zoomed_ticks(values_)
    assert levels[0] <= min(values_) <= max(values_) <= levels[-1]
    assert levels == sorted(set(levels))
    assert 2 <= len(levels) <= 9


# ---------------------------------------------------------------- Markdown, LaTeX


def test_markdown_tables_are_well_formed(found: Comparison) -> None:
    text = comparison_markdown(found, COMMAND)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == sum(len(table.rows) + 2 for table in comparison_tables(found))
    assert "50% &lt;b>off&lt;/b> & more\\_" in text
    assert "protocol honest" in text.lower()


def test_latex_compiles_in_principle(found: Comparison) -> None:
    text = comparison_latex(found, COMMAND)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == len(comparison_tables(found))
    assert r"50\% $<$b>off$<$/b> \& more\_" in text
    for table in comparison_tables(found):
        assert rf"\begin{{tabular}}{{l{'r' * (len(table.headers) - 1)}}}" in text
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert not re.search(r"(?<!\\)[%#_]", "\n".join(body))


def test_latex_escapes_everything_it_reserves() -> None:
    assert latex(r"a\b ^~ {x} #1 $ ±") == (r"a\textbackslash{}b \textasciicircum{}\textasciitilde{} \{x\} \#1 \$ $\pm$")


def test_the_tables_are_the_same_everywhere(tmp_path: Path, found: Comparison) -> None:
    for cell in (cell for table in comparison_tables(found) for row in table.rows for cell in row[2:]):
        assert cell in str(found)
        assert latex(cell) in comparison_latex(found, COMMAND)
