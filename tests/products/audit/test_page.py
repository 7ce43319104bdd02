from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import pytest

from caged.evaluation.metrics import METRICS, metric_keys
from caged.page.definitions import meaning
from caged.products.audit.charts import bucket_shares, counted, lorenz
from caged.products.audit.evidence import TEXTS, Evidence
from caged.products.audit.page import audit_html
from caged.products.audit.result import AuditResult
from caged.products.audit.verdict import verdict
from caged.products.audit.view import Audit, summary_rows, to_json
from tests.page.pages import check_page
from tests.products.audit.audits import K, made_up, with_further_tests, with_values


def items(audit: AuditResult) -> str:
    return str(verdict(audit)[0])


def users(audit: AuditResult) -> str:
    return str(verdict(audit)[1])


def worth(audit: AuditResult) -> str:
    return str(verdict(audit)[2])


# ---------------------------------------------------------------- the verdict


@pytest.mark.parametrize("audit", [made_up(), made_up(test=False), made_up(intervals=False)])
def test_three_sentences(audit: AuditResult) -> None:
    assert len(verdict(audit)) == 3
    for finding in verdict(audit):
        assert str(finding).endswith(".")
        assert ". " not in str(finding)
        assert finding.meaning


def test_exaggeration_is_only_claimed_beyond_interval_and_threshold() -> None:
    audit = made_up()
    relevant = audit.exposure.relevant
    assert relevant is not None
    wanted = relevant[audit.exposure.popular].sum() / relevant.sum()

    def said(popular_places: float, width: float) -> str:
        return items(with_values(audit, width, tail_share=1 - popular_places))

    assert said(wanted + 0.05, 0.01).startswith("The lists lean towards popular items:")
    assert said(wanted + 0.05, 0.04).startswith("The lists hold about as many popular items as people wanted:")
    assert said(wanted + 0.015, 0.001).startswith("The lists hold about as many")
    assert said(wanted - 0.05, 0.01).startswith("The lists hold fewer popular items than people wanted:")


def test_without_a_test_the_history_is_the_measure_and_nothing_is_claimed_about_worth() -> None:
    audit = made_up(test=False)
    before = audit.exposure.degrees[audit.exposure.popular].sum() / audit.exposure.degrees.sum()
    assert "than the history" in items(with_values(audit, tail_share=1 - before + 0.1))
    assert "wanted" not in items(audit)
    assert worth(audit).startswith("We do not know whether people wanted these items: no test part was given")
    assert "find" not in users(audit)


@pytest.mark.parametrize(
    ("niche", "blockbuster", "words"),
    [
        (1.5, 0.2, "are pushed furthest towards popular things: their lists are 2.50 times (2.49 to 2.51) as popular"),
        (1.5, 1.6, "are shown more popular things than they chose themselves"),
        (0.1, 0.0, "are shown things about as popular as their own"),
        (-0.5, 0.0, "are shown even less popular things than they chose themselves"),
    ],
)
def test_people_with_niche_taste(niche: float, blockbuster: float, words: str) -> None:
    audit = with_values(made_up(), 0.01, popularity_lift_niche_taste=niche, popularity_lift_blockbuster=blockbuster)
    assert words in users(audit)


@pytest.mark.parametrize(
    ("niche", "blockbuster", "words"),
    [
        (0.1, 0.3, "the lists find less of what the first group wanted, 10% against 30%"),
        (0.3, 0.1, "the lists find more of what the first group wanted, 30% against 10%"),
        (0.3, 0.31, "neither group is clearly better served"),
    ],
)
def test_who_is_served(niche: float, blockbuster: float, words: str) -> None:
    assert words in users(with_values(made_up(), 0.01, recall_niche_taste=niche, recall_blockbuster=blockbuster))


@pytest.mark.parametrize(
    ("popular", "niche", "width", "lead"),
    [
        (0.4, 0.1, 0.01, "Niche wishes are met less often than popular ones:"),
        (0.1, 0.4, 0.01, "Niche wishes are met more often than popular ones:"),
        (0.4, 0.38, 0.01, "Popular and niche wishes are met about equally often:"),
        (0.4, 0.3, 0.1, "There are too few users to tell whether niche wishes are met as often as popular ones:"),
    ],
)
def test_wishes(popular: float, niche: float, width: float, lead: str) -> None:
    assert worth(with_values(made_up(), width, recall_popular=popular, recall_niche=niche)).startswith(lead)


def test_a_handful_of_users_without_an_interval_decides_nothing() -> None:
    audit = with_values(made_up(), recall_popular=0.4, recall_niche=0.0)
    key = f"recall@{K}/niche"
    alone = replace(audit, intervals={name: one for name, one in audit.intervals.items() if name != key})
    few = replace(alone, users={**alone.users, key: 3})
    assert worth(alone).startswith("Niche wishes are met less often")
    assert worth(few).startswith("There are too few users to tell")


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ("natural", "favours lists that repeat popularity"),
        ("intervened", "balanced by popularity"),
        ("random", "shown at random"),
        ("oracle", "simulated truth"),
    ],
)
def test_what_it_rests_on_is_said(evidence: Evidence, words: str) -> None:
    audit = made_up(evidence=evidence)
    assert words in worth(audit)
    page = audit_html(audit)
    assert TEXTS[evidence].replace("'", "&#39;") in page
    assert "Accuracy was measured" in page


def test_missing_intervals_and_values_are_admitted() -> None:
    assert "no interval" in items(made_up(intervals=False))
    undefined = dict.fromkeys(("tail_share", "popularity_lift_niche_taste", "recall_niche"), math.nan)
    audit = with_values(made_up(), **undefined)
    assert items(audit).startswith("Nothing can be said about popular items:")
    assert users(audit).startswith("Nothing can be said about people with niche taste:")
    assert worth(audit).startswith("Popular and niche wishes cannot be compared:")


# ---------------------------------------------------------------- numbers of the charts


def test_shares_by_tenth_add_up() -> None:
    for counts in counted(made_up()).values():
        assert sum(bucket_shares(made_up(), counts)) == pytest.approx(1)


def test_lorenz_curves_have_the_gini_of_the_metric() -> None:
    audit = made_up()
    shown = audit.exposure.shown[K]
    curve = lorenz(shown, len(shown))
    area = (sum(curve) - 0.5) / len(shown)  # trapezoids between 0 and 1
    assert 1 - 2 * area == pytest.approx(audit.metrics[f"gini@{K}"], abs=1e-9)


# ---------------------------------------------------------------- the page


def test_the_page_is_sound_and_complete() -> None:
    walker = check_page(audit_html(with_further_tests()))
    assert len(walker.of("figure")) == 6
    assert len(walker.of("svg")) == 4 * 2 + 2 * 2  # four charts for desk and phone, two figures of two panels
    assert len(walker.of("article")) == 3


def test_without_a_test_there_is_no_accuracy() -> None:
    page = audit_html(made_up(test=False))
    walker = check_page(page)
    assert len(walker.of("figure")) == 4
    assert "There is no test part" in page
    assert "Wanted in the test" not in page
    assert page.count("We do not know whether") == 1  # in the verdict
    assert "not known" not in page  # on no tile
    assert "<dt>recall@" not in page
    assert "<dt>tail_share@" in page


def test_every_number_has_a_definition_that_mouse_keyboard_and_touch_reach() -> None:
    audit = made_up()
    page = audit_html(audit)
    walker = check_page(page)
    for key in audit.keys:
        assert meaning(key).replace("'", "&#39;") in page
    boxes = {attributes["id"] for attributes in walker.of("div") if "popover" in attributes}
    opened = {attributes["popovertarget"] for attributes in walker.of("button")}
    assert boxes
    assert opened == boxes
    assert all(attributes["title"] for attributes in walker.of("abbr"))


def test_every_metric_is_explained() -> None:
    said = [meaning(key) for key in metric_keys([20])]
    assert len(set(said)) == len(said)
    assert len(METRICS) <= len(said)


def test_titles_are_shown_and_escaped() -> None:
    page = audit_html(made_up())
    assert "<Tale>" not in page
    assert "The &lt;Tale&gt; of Item" in page
    assert '<span class="tag marked">niche</span>' in page
    assert '<span class="tag wanted">wanted</span>' in page


def test_wanted_items_that_nobody_is_shown_are_named() -> None:
    audit = made_up()
    shown = audit.exposure.shown[K].copy()
    relevant = audit.exposure.relevant
    assert relevant is not None
    missed = int((relevant * ~audit.exposure.popular).argmax())
    shown[missed] = 0
    page = audit_html(replace(audit, exposure=audit.exposure._replace(shown={K: shown}), titles={str(missed): "Gone"}))
    assert "Of those shown to nobody, 1 was wanted by somebody in the test." in page
    assert '<th scope="row">Gone</th>' in page
    assert "The niche items wanted most among those that no list shows" not in audit_html(audit)


def test_the_command_stands_at_the_bottom_and_the_treatment_above() -> None:
    page = audit_html(made_up())
    footer = page[page.index("<footer>") :]
    assert "caged audit &#39;my lists.csv&#39; --train train.csv --test test.csv" in footer
    assert "3 listed items were not in the catalogue" in page


def test_several_tests_stand_side_by_side() -> None:
    page = audit_html(with_further_tests())
    for words in ("<li>test: Accuracy was", "<li>truth: Accuracy was", "<li>shuffled: Accuracy was"):
        assert words in page


def test_undefined_numbers_do_not_spoil_the_page() -> None:
    audit = made_up()
    empty = replace(
        audit, metrics=dict.fromkeys(audit.metrics, math.nan), intervals={}, examples=(), notes=(), per_user=None
    )
    page = audit_html(empty)
    check_page(page)
    assert "nan" not in page
    assert "Example users" not in page


# ---------------------------------------------------------------- the Python object


def test_an_audit_prints_as_a_table() -> None:
    audit = made_up()
    text = str(Audit(audit))
    lines = text.splitlines()
    assert lines[0] == "Audit of made-up lists, test: natural"
    assert lines[1].startswith("Not captured by popularity: ")
    assert lines[2] == items(audit)
    assert any(line.startswith(f"recall@{K}/niche") and " to " in line for line in lines)
    assert audit.notes[0] in lines
    assert not any(row[0].startswith("recall") for row in summary_rows(made_up(test=False)))


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = Audit(made_up())
    assert audit._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert audit._repr_html_().startswith("<pre>Audit of made-up lists")


def test_an_audit_is_kept_with_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Audit(made_up()).save(tmp_path / "with") / "report.html").read_text() == audit_html(made_up())
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    kept = Audit(made_up()).save(tmp_path / "without")
    assert (kept / "metrics.json").exists()
    assert not (kept / "report.html").exists()


def test_machines_get_everything() -> None:
    content = to_json(with_further_tests())
    assert len(content["verdict"]) == 4
    assert content["severity"]["level"] == 0
    assert content["metrics"][f"recall@{K}"] == made_up().metrics[f"recall@{K}"]
    assert set(content["further_tests"]) == {"truth", "shuffled"}
