"""The page of a search."""

from __future__ import annotations

from pathlib import Path

from caged.models import display_name
from caged.products.tune.finals import Finals
from caged.products.tune.page import answer_html, write_page
from tests.page.pages import check_page
from tests.products.tune.answered import Answered, on_test, with_users

COMMAND = "caged tune show t"


def test_the_page_of_a_finished_search(answered: Answered, tmp_path: Path) -> None:
    tests = Finals({"lightgcn": with_users(tmp_path, "a", 2, 0.1), "ips": with_users(tmp_path, "b", 2, 0.0)})
    answer = answered("recall@20>=50% of lightgcn", trials=7, tests=tests)
    page = answer_html(answer, COMMAND)
    walker = check_page(page)
    assert answer.winner is not None
    assert f"{display_name(answer.winner.method)} wins with recall@20" in page
    assert "more than chance for these users" in page
    dots = [entry for entry in page.split("<title>")[1:] if entry.startswith(("LightGCN, trial", "IPS, trial"))]
    assert len(dots) == 2 * 14  # every trial, on a desk and on a phone
    assert any("learning_rate=" in dot.partition("</title>")[0] for dot in dots)
    assert "caged train --data" in page
    assert f"t/presets/{answer.winner.method}.toml" in page
    titles = [attributes["id"] for attributes in walker.of("section") if "id" in attributes]
    assert titles[:2] == ["accuracy-and-niche-items-every-trial", "how-sure-is-the-lead"]
    assert {"what-each-option-did", "what-it-cost", "train-the-chosen-model"} <= set(titles)


def test_what_is_not_known_is_said(answered: Answered) -> None:
    page = answer_html(answered(trials=2), COMMAND)
    check_page(page)
    assert "nothing is tested yet" in page
    assert "How sure is the lead?" not in page
    assert "Fewer than 6 trials" in page


def test_nobody_wins(answered: Answered) -> None:
    answer = answered("recall@20>=0.9")
    page = answer_html(answer, COMMAND)
    check_page(page)
    assert "No method wins: no trial kept recall@20&gt;=0.9." in page
    assert "Train the chosen model" not in page
    assert write_page(answer, COMMAND).read_text(encoding="utf-8") == page


def test_one_side_may_lack_its_tests(answered: Answered) -> None:
    page = answer_html(answered(tests=Finals(on_test(ips=[0.4]), left=1)), COMMAND)
    check_page(page)
    assert "still to be made and tested: 1." in page


def test_a_closed_search_without_a_test_is_not_called_open(answered: Answered) -> None:
    page = answer_html(answered(tests=Finals(left=2)), COMMAND)
    assert "still to be made and tested: 2." in page
    assert "is not closed" not in page
