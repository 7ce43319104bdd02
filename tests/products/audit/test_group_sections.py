"""Groups that somebody chose on the page and as text, whatever they are called and however many there are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from caged.evaluation.groups import grouping
from caged.products.audit.group_sections import MOST_BARS, group_sections, group_tables
from caged.products.audit.of_lists import audit_lists
from caged.products.audit.page import audit_html
from caged.products.audit.result import AuditResult
from tests.page.pages import check_page

USERS, ITEMS, K = 40, 60, 5
GENERATOR = np.random.default_rng(3)
TRAIN = pd.DataFrame(
    [(u, i) for u in range(USERS) for i in GENERATOR.permutation(30)[:6]], columns=["user_id", "item_id"]
)
TEST = pd.DataFrame([(u, 30 + (u + n) % 30) for u in range(USERS) for n in range(3)], columns=["user_id", "item_id"])
LISTS = pd.DataFrame(
    [(u, (7 * u + n) % ITEMS, n + 1) for u in range(USERS) for n in range(K)], columns=["user_id", "item_id", "rank"]
)
ODD = {"a b": ["<script>", "x & y", "\u202e"], "a-b": ["1", "2", "3"], "中": ["x", "y", "z"], "文": ["x", "y", "z"]}


def audited(*, test: bool = True, items: dict[str, list[str]] | None = None) -> AuditResult:
    families = ODD if items is None else items
    of_items = pd.DataFrame({"item_id": range(ITEMS)} | {k: np.resize(v, ITEMS) for k, v in families.items()})
    of_users = pd.DataFrame({"user_id": range(USERS), "a b": np.resize(["old", "young"], USERS)})
    chosen = grouping(item_groups=of_items, user_groups=of_users)
    return audit_lists(LISTS, train=TRAIN, test=TEST if test else None, ks=(K,), chosen=chosen)


@pytest.mark.parametrize("test", [True, False])
def test_odd_names_break_no_page(test: bool) -> None:
    audit = audited(test=test)
    sections = group_sections(audit)
    assert [section.title for section in sections] == [*(f"Items by {name}" for name in ODD), "Users by a b"]
    page = audit_html(audit)
    check_page(page)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert ("reo@5/a-b" in page) == test


def test_shares_and_parity_are_those_of_the_lists() -> None:
    audit = audited(items={"half": ["a", "b"]})
    (family, _) = audit.families
    places = LISTS["item_id"] % 2
    assert [one.places for one in family.groups] == pytest.approx([(places == 0).mean(), (places == 1).mean()])
    assert [one.size for one in family.groups] == [30, 30]
    (section, _) = group_sections(audit)
    assert section.paragraphs[0].startswith("Statistical parity (rsp@5/half): 0.")
    assert "Equal opportunity (reo@5/half): 0." in section.paragraphs[0]


def test_of_many_groups_the_largest_have_bars_and_all_are_in_the_table() -> None:
    audit = audited(items={"shelf": [f"s{n:02d}" for n in range(30)]})
    (section, _) = group_sections(audit)
    assert section.figure is not None
    assert f"The {MOST_BARS} largest groups; the table has 10 more." in section.figure.caption
    assert len(section.figure.table.rows) == 30
    (table, _) = group_tables(audit)
    assert len(table.rows) == 30
    assert table.title.startswith("Items by shelf: rsp@5/shelf")


def test_a_parity_of_one_group_is_undefined_and_says_so() -> None:
    (section, _) = group_sections(audited(items={"all": ["same"]}))
    assert "undefined, because fewer than two groups have anything to count" in section.paragraphs[0]
