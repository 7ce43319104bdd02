from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from caged.models import METHODS
from caged.page.html import Term
from caged.products.demo.experiment import Demo
from caged.products.demo.page import _page, comparison, demo_html
from caged.products.demo.words import random_recall, sentences
from tests.page.pages import check_page
from tests.products.demo.demos import DEMO, row, with_all_methods, with_caged, with_debiased, with_top_fifth


def echo(demo: Demo) -> str:
    return sentences(demo)[0]


def judges(demo: Demo) -> str:
    return sentences(demo)[1]


def truth(demo: Demo) -> str:
    return sentences(demo)[2]


# ---------------------------------------------------------------- sentences


def test_three_sentences() -> None:
    assert len(sentences(DEMO)) == 3
    for sentence in sentences(DEMO):
        assert sentence.endswith(".")
        assert ". " not in sentence


def test_the_echo_is_only_claimed_where_there_is_one() -> None:
    assert echo(with_top_fifth(0.71, 0.29)).startswith(
        "This shop shows what sells and sells what it shows: after 15 rounds"
    )
    assert "71%" in echo(with_top_fifth(0.71, 0.29))
    assert "29%" in echo(with_top_fifth(0.71, 0.29))
    assert "hardly more concentrated" in echo(with_top_fifth(0.30, 0.29))
    assert "hardly more concentrated" in echo(with_top_fifth(0.25, 0.29))


def test_chance_is_k_of_the_items_that_are_left() -> None:
    assert random_recall(DEMO) == pytest.approx(20 / (1500 - 35))


@pytest.mark.parametrize(
    ("natural", "oracle", "words"),
    [
        (0.16, 0.0165, ("finds 12 times as much as chance;", "finds 1.2 times as much as chance.")),
        (0.16, 0.0137, ("finds 12 times", "finds no more than chance.")),
        (0.0137, 0.0050, ("finds no more than chance;", "finds less than chance.")),
        (0.0400, math.nan, ("finds 2.9 times as much as chance;", "finds nothing that can be measured.")),
    ],
)
def test_the_judges_say_what_the_numbers_say(natural: float, oracle: float, words: tuple[str, str]) -> None:
    demo = replace(DEMO, rows=[row("mostpop", natural, oracle, 0.2), *DEMO.rows[1:]])
    first, second = judges(demo).split("judged by what people truly like")
    assert "showing everybody the same bestsellers" in first
    assert words[0] in first
    assert words[1] in second


def test_the_truth_compares_with_what_is_possible() -> None:
    assert truth(DEMO) == (
        "Of 20 items that LightGCN recommends, people truly like 10.2 on average (bestsellers: 3.2), "
        "where 17.6 would be possible."
    )


@pytest.mark.parametrize(
    ("natural", "preference", "words"),
    [
        (0.37, 0.60, "debiased raises this to 12.0 and finds 8% fewer of the shop's later clicks"),
        (0.37, 0.45, "debiased lowers this to 9.0 and finds 8% fewer of the shop's later clicks"),
        (0.44, 0.45, "debiased lowers this to 9.0 and finds 10% more of the shop's later clicks"),
        (0.40, 0.515, "debiased changes this little (10.3) and finds about as many"),
    ],
)
def test_a_debiased_method_gets_what_it_deserves(natural: float, preference: float, words: str) -> None:
    assert words in truth(with_debiased(natural, preference))


@pytest.mark.parametrize(
    ("difference", "verdict", "points"),
    [
        ((0.002, 0.0005, 0.0035), "finds more of what people truly like than", ("+0.20", "+0.05", "+0.35")),
        ((-0.002, -0.0035, -0.0005), "finds less of what people truly like than", ("-0.20", "-0.35", "-0.05")),
        ((0.001, -0.0005, 0.0025), "neither clearly better nor worse than", ("+0.10", "-0.05", "+0.25")),
        ((0.001, None, None), "'s oracle recall@20 differs from that of", ("+0.10",)),
    ],
)
def test_caged_is_judged_by_the_truth_whatever_comes_out(
    difference: tuple[float, float | None, float | None], verdict: str, points: tuple[str, ...]
) -> None:
    demo = with_caged(*difference)
    assert len(sentences(demo)) == 4
    sentence = sentences(demo)[3]
    assert sentence.startswith("CAGED")
    assert f"{verdict} LightGCN" in sentence
    assert all(point in sentence for point in points)
    between = f" [{', '.join(points[1:])}]" if len(points) > 1 else ""
    assert comparison(demo).rows[2][4] == f"{points[0]} pp{between}"
    page = demo_html(demo, "caged demo")
    check_page(page)
    assert sentence.replace("'", "&#39;") in page


def test_other_choices_of_methods() -> None:
    only = replace(DEMO, rows=[row("lightgcn", 0.4, 0.055, 0.5)])
    assert "LightGCN finds" in judges(only)
    assert "bestsellers" not in truth(only)
    unknown = replace(DEMO, rows=[row("mostpop", 0.16, 0.0165, 0.16)])
    assert truth(unknown).startswith("Of 20 items that Most popular recommends, people truly like 3.2")


# ---------------------------------------------------------------- the page


def test_the_table_has_every_number() -> None:
    table = comparison(DEMO)
    assert [column.name for column in table.columns] == [
        "method",
        "natural recall@20",
        "natural niche",
        "oracle recall@20",
        "against LightGCN",
        "oracle niche",
        "true preference@20",
        "tail share@20",
    ]
    assert all(column.meaning for column in table.columns[1:])
    assert table.rows == [
        ["Most popular", "16.00%", "1.60%", "1.64%", "-3.86 pp [-4.10, -3.60]", "0.16%", "16.00%", "12.34%"],
        ["LightGCN", "40.00%", "4.00%", "5.50%", "-", "0.55%", "51.00%", "12.34%"],
        ["best possible", "-", "-", "-", "-", "-", "88.00%", "-"],
    ]


def test_the_page_has_a_line_per_number() -> None:
    table = next(section.table for section in _page(DEMO, "caged demo").sections if section.title == "All numbers")
    assert table is not None
    assert [column.name for column in table.columns] == ["number", "Most popular", "LightGCN", "best possible"]
    assert [list(row) for row in table.rows[:4:3]] == [
        ["natural recall@20", "16.00%", "40.00%", "-"],
        ["against LightGCN", "-3.86 pp [-4.10, -3.60]", "-", "-"],
    ]
    meanings = [column.meaning for column in comparison(DEMO).columns[1:]]
    assert [row[0].meaning for row in table.rows if isinstance(row[0], Term)] == meanings


def test_the_page_is_sound_and_shows_three_plots() -> None:
    walker = check_page(demo_html(DEMO, "caged demo"))
    assert len(walker.of("figure")) == 3
    assert len(walker.of("svg")) == 2 + 2 + 2  # desk and phone twice, then two panels
    assert len(walker.of("table")) == 4


def test_the_page_says_how_it_came_about() -> None:
    page = demo_html(DEMO, "caged demo --seed 7")
    for words in (
        "caged demo --seed 7",
        "proves nothing about real shops",
        "1,323 held-out clicks on items shown at random (explore clicks)",
        "LightGCN kept epoch 12",
        "numpy",
        "One market and one seed",
    ):
        assert words in page
    for sentence in sentences(DEMO):
        assert sentence.replace("'", "&#39;") in page


def test_the_figures_hold_the_numbers() -> None:
    page = demo_html(DEMO, "caged demo")
    for words in (
        "<title>rounds 11 to 15, This shop: 0.5</title>",
        "<title>rounds 1 to 5, Showing at random: 0.07</title>",
        "<title>tenth 1, Clicks so far: 55%</title>",
        "<title>tenth 1, LightGCN: 70%</title>",
        "<title>Most popular: 16% (15% to 17%)</title>",
        "<title>LightGCN: 5.5% (5.4% to 5.6%)</title>",
        "<title>Random list: 1.4%</title>",
    ):
        assert words in page


def test_undefined_numbers_do_not_spoil_the_page() -> None:
    hole = row("lightgcn", math.nan, 0.05, 0.5)
    page = demo_html(replace(DEMO, rows=[DEMO.rows[0], hole]), "caged demo")
    check_page(page)
    assert "nan" not in page


def test_every_method_is_explained_and_three_people_are_shown_what_each_makes_of_them() -> None:
    demo = with_all_methods()
    page = demo_html(demo, "caged demo", {"lightgcn": "audit-lightgcn.html"})
    walker = check_page(page)
    for judged in demo.rows:
        assert METHODS[judged.method].plain in page
    assert len(walker.of("article")) == 3
    headings = re.findall(r"<h4>(.*?)</h4>", page)
    assert headings[:5] == ["Clicked", "Most popular", "LightGCN", "CAGED", "IPS"]
    assert "A &lt;Quiet&gt; Garden" in page
    assert "Wanted among the 20 shown: Most popular 4, LightGCN 4" in page
    assert '<a href="audit-lightgcn.html">Audit of LightGCN</a>' in page
