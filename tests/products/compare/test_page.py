"""A comparison on paper: the page, its scatter, Markdown and LaTeX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caged.models import METHODS
from caged.page.scatter import Point, scatter, zoomed_ticks
from caged.page.svg import COLOURS
from caged.page.text_table import latex, latex_cell
from caged.page.units import in_table
from caged.products.compare.comparison import Comparison, compare
from caged.products.compare.page import comparison_html
from caged.products.compare.tables import change, closing, comparison_tables
from caged.products.compare.text import comparison_latex, comparison_markdown
from caged.products.compare.words import headline, sentences
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
        r"IPS against LightGCN: recall@20 rises from \d+\.\d% to \d+\.\d% \(\+\d+\.\d%; more than chance for these "
        r"users\); recall@20/niche rises from .*; more than chance for these users\)\.",
        ips,
    )
    assert "may be chance" in foreign
    assert "better beyond chance over training runs" in sentences(of_seeds)[0]


def test_the_headline_names_the_winners_and_how_sure_that_is(found: Comparison, of_seeds: Comparison) -> None:
    said = headline(found)
    assert said.sentence == "IPS is best both in accuracy and on niche items."
    assert said.detail.startswith("Both leads over the next best method are larger than chance for these users;")
    assert (
        headline(of_seeds).detail == "Both leads over the next best method are larger than chance over training runs."
    )
    page = comparison_html(found, COMMAND)
    assert page.index(said.sentence) < page.index("<svg") < page.index("<h2>All values")


def test_winners_that_differ_are_both_named(tmp_path: Path) -> None:
    accurate, niche = values(7, 0.05), values(7, 0.05)
    accurate["recall@20/niche"] = accurate["recall@20/niche"] / 2
    niche["recall@20"] = niche["recall@20"] / 2
    write_run(tmp_path / "a", "ease", per_user=accurate)
    write_run(tmp_path / "b", "itemknn", per_user=niche)
    said = headline(compare([tmp_path / "a", tmp_path / "b"]))
    assert re.fullmatch(
        r"EASE is best in accuracy \(recall@20 [\d.]+%\)\. "
        r"ItemKNN is best on niche items \(recall@20/niche [\d.]+%\)\.",
        said.sentence,
    )


def test_a_shared_best_value_is_nobodys_win(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "ease")
    write_run(tmp_path / "b", "itemknn")
    said = headline(compare([tmp_path / "a", tmp_path / "b"]))
    assert said.sentence.startswith("In accuracy several methods share the best value")
    assert not said.detail


def test_a_change_over_nearly_nothing_is_not_given(tmp_path: Path) -> None:
    tiny = {key: column * 1e-4 for key, column in values(7).items()}
    write_run(tmp_path / "a", "ease", per_user=tiny)
    write_run(tmp_path / "b", "itemknn")
    found = compare([tmp_path / "a", tmp_path / "b"])
    assert change(found.differences[0]) == "-"
    assert not re.search(r"\d,\d{3}%", comparison_html(found, COMMAND))


def test_a_method_has_one_look_and_one_name_on_every_page(found: Comparison) -> None:
    page = comparison_html(found, COMMAND)
    looks = {METHODS[name].look % COLOURS for name in ("lightgcn", "ips")}
    assert all(f"--series-{look}," in page for look in looks)
    assert "IPS against LightGCN" in page
    assert ">ips<" not in page


def test_what_was_tested_is_said(found: Comparison, of_seeds: Comparison) -> None:
    assert closing(found)[0].startswith("One run per method: the tests are over users")
    assert closing(of_seeds)[0].startswith("Tested over seeds: Welch's t over runs")
    assert closing(found)[-1] == "ips is best on both recall@20 and recall@20/niche."


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
    values, _, tests = comparison_tables(found)
    for row in tests.rows:
        assert all(cell.split(" ")[0].replace("<", "&lt;") in page for cell in row[1:])
    for group in found.methods:
        assert in_table(found.metrics[0])(group.mean(found.metrics[0])) in page
    assert len(values.rows) == 3


def test_the_page_of_seeds(of_seeds: Comparison) -> None:
    page = comparison_html(of_seeds, COMMAND)
    check_page(page)
    assert "Tests over seeds" in page
    assert "Hedges" in page


# ---------------------------------------------------------------- scatter


def draw(places: dict[str, tuple[float, float]], front: tuple[str, ...], width: int = 720) -> str:
    points = {name: Point(x, y) for name, (x, y) in places.items()}
    return scatter(points, front, title="t", description="d", x_label="x", y_label="y", width=width)


def test_intervals_of_points_are_drawn_said_and_inside() -> None:
    points = {"a": Point(0.3, 0.2, (0.1, 0.5), (0.15, 0.4)), "b": Point(0.31, 0.2)}
    drawing = scatter(points, ("b",), title="t", description="d", x_label="x", y_label="y", width=720, height=400)
    assert "a: x 0.3 (0.1 to 0.5), y 0.2 (0.15 to 0.4)" in drawing
    assert "b: x 0.31, y 0.2" in drawing
    lines = re.findall(r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"[^>]*stroke-width:1.25', drawing)
    assert len(lines) == 2
    assert all(0 <= float(number) <= 720 for line in lines for number in line)


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
    assert r"50\% $<$b$>$off$<$/b$>$ \& more\_" in text
    for table in comparison_tables(found):
        assert rf"\begin{{tabular}}{{l{'r' * (len(table.headers) - 1)}}}" in text
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert not re.search(r"(?<!\\)[%#_]", "\n".join(body))


def test_latex_escapes_everything_it_reserves() -> None:
    assert latex(r"a\b ^~ {x} #1 $ ±") == (r"a\textbackslash{}b \textasciicircum{}\textasciitilde{} \{x\} \#1 \$ $\pm$")


def test_the_tables_are_the_same_everywhere(tmp_path: Path, found: Comparison) -> None:
    for cell in (cell for table in comparison_tables(found) for row in table.rows for cell in row[2:]):
        assert cell in str(found)
        assert latex_cell(cell) in comparison_latex(found, COMMAND)


def test_axes_of_differences_are_in_percentage_points(found: Comparison) -> None:
    """The bars are labelled in them, too: the largest bar lies within the axis."""
    page = comparison_html(found, COMMAND)
    drawing = page[page.index("Difference to ") :]
    drawing = drawing[: drawing.index("</svg>")]
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", drawing)
    assert "percentage points" in texts
    ticks = [float(text) for text in texts if re.fullmatch(r"-?[\d.]+", text)]
    bars = [float(text.removesuffix(" pp")) for text in texts if text.endswith(" pp")]
    assert bars
    assert min(ticks) <= min(bars)
    assert max(bars) <= max(ticks)
    assert max(map(abs, ticks)) <= 10 * max(1.0, *map(abs, bars))
