"""How rows and data are called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from caged.products.reproduction.titles import data_name, row_title, titles_of, varied_key
from caged.products.study import PlannedRun
from tests.products.reproduction.studied import runs_of, small_plan, with_section

RUN = PlannedRun(dataset="shop", data="logs/shop.csv", protocol="honest", row="lightgcn", method="lightgcn", seed=1)


def test_known_data_has_its_own_name_and_a_path_that_of_the_plan() -> None:
    assert data_name(replace(RUN, data="epinions-caged")) == "epinions-caged"
    assert data_name(RUN) == "shop"


def test_a_row_without_a_title_is_called_after_its_method() -> None:
    assert row_title(RUN) == "LightGCN"
    assert row_title(replace(RUN, title=" \n")) == "LightGCN"
    assert row_title(replace(RUN, kind="adjust", needs=RUN)) == "LightGCN adjusted"
    assert row_title(replace(RUN, kind="adjust", needs=RUN, title="ours")) == "ours"


def test_a_title_is_one_line() -> None:
    assert row_title(replace(RUN, title="LightGCN\r\n of  ours ")) == "LightGCN of ours"


@pytest.mark.parametrize(
    ("title", "key", "said"),
    [("", "method.lam", "CAGED, lambda 0.5"), ("", "method.eps", "CAGED, eps 0.5"), ("Ours", "method.eps", "Ours 0.5")],
)
def test_a_varied_row_says_what_has_the_value(tmp_path: Path, title: str, key: str, said: str) -> None:
    row = f'method = "caged"\ntitle = "{title}"\nvary = {{ key = "{key}", values = [0.5] }}'
    (run,) = runs_of(small_plan(tmp_path, with_section("further", {"tried": row})), "tried-0.5")
    assert (row_title(run), varied_key(run)) == (said, key)


def test_titles_that_repeat_are_told_apart_by_the_names_of_the_rows() -> None:
    runs = [RUN, replace(RUN, seed=2), replace(RUN, row="wide"), replace(RUN, row="deep", title="Deep")]
    assert titles_of(runs) == {"lightgcn": "LightGCN (lightgcn)", "wide": "LightGCN (wide)", "deep": "Deep"}
    odd = replace(RUN, row="odd", title="LightGCN (wide)")
    assert len(set(titles_of([*runs, odd]).values())) == 4
