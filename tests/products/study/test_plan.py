from __future__ import annotations

import pytest

from caged.errors import ConfigError
from caged.products.study import chosen
from caged.products.study.plan import ordered
from tests.products.study.plans import SMALL, plan_of


@pytest.fixture
def plan(tmp_path):
    return plan_of(SMALL, tmp_path)


def names(runs):
    return [run.name for run in runs]


def test_urgent_runs_come_first_and_after_what_they_need(plan):
    order = names(plan.runs)
    # galore is the most urgent, and needs a LightGCN run that is less urgent by itself
    assert order[:2] == ["first-honest-lightgcn-1", "first-honest-galore-1"]
    assert order.index("first-honest-wide-1") < order.index("second-honest-lightgcn-1")
    assert order[-1] == "first-paper-lightgcn-1"
    for run in plan.runs:
        assert run.needs is None or order.index(run.needs.name) < order.index(run.name)


def test_a_run_of_two_sections_is_one_run(plan):
    (run,) = (run for run in plan.runs if run.name == "first-honest-lightgcn-1")
    assert set(run.sections) == {"main", "further"}
    assert run.priority == 2
    assert len(set(names(plan.runs))) == len(plan.runs)


def test_words_of_one_kind_add_up_and_kinds_narrow(plan):
    found = chosen(plan, ["first", "honest", "main", "lightgcn", "ease"], seeds=1)
    assert set(names(found)) == {"first-honest-lightgcn-1", "first-honest-ease-1"}
    assert len(chosen(plan, ["first", "second", "ease"])) == 6
    assert {run.row for run in chosen(plan, ["further", "honest"])} == {
        *("galore", "wide", "lightgcn", "scale-0.5", "scale-2")
    }


def test_a_row_that_varies_something_stands_for_its_values(plan):
    assert {run.value for run in chosen(plan, ["scale"])} == {"0.5", "2"}
    assert {run.value for run in chosen(plan, ["scale-2"])} == {"2"}


def test_a_method_stands_for_its_rows_unless_one_has_its_name(plan):
    assert {run.row for run in chosen(plan, ["lightgcn"])} == {"lightgcn"}
    renamed = plan_of(
        SMALL.replace("[rows.lightgcn]", "[rows.base]").replace('"lightgcn", "adjusted"', '"base", "adjusted"')
        .replace('= "lightgcn"\nkeep', '= "base"\nkeep').replace('init = "lightgcn"', 'init = "base"')
        .replace('rows = ["lightgcn"]', 'rows = ["base"]'),
        plan.path.parent,
    )  # fmt: skip
    assert {run.row for run in chosen(renamed, ["lightgcn"])} == {"base", "wide", "scale-0.5", "scale-2", "adjusted"}


def test_seeds_are_the_first_ones_of_each_row(plan):
    assert {run.seed for run in chosen(plan, seeds=2)} == {1, 2}
    later = plan_of(SMALL.replace("seeds = [1, 2, 3]", "seeds = [4, 5]"), plan.path.parent)
    found = {(run.row, run.seed) for run in chosen(later, seeds=1)}
    assert {("adjusted", 4), ("wide", 1)} <= found  # the first of each row, not of all
    assert ("adjusted", 5) not in found
    assert {run.seed for run in chosen(plan, ["ease"])} == {1, 2, 3}


@pytest.mark.parametrize(
    ("only", "said"),
    [(["lightgnc"], "did you mean 'lightgcn'"), (["second", "further"], "fits no run")],
)
def test_words_that_fit_nothing_are_refused(plan, only, said):
    with pytest.raises(ConfigError, match=said):
        chosen(plan, only)


def test_the_place_of_a_record_is_that_of_caged_train(plan):
    places = {run.name: str(run.place) for run in plan.runs}
    assert places["first-honest-wide-1"] == "gowalla/honest/lightgcn-wide/seed1.json"
    assert places["second-honest-ease-3"] == "ml-100k/honest/ease/seed3.json"
    assert places["second-honest-adjusted-2"] == "ml-100k/honest/lightgcn-adjusted/seed2.json"


def test_a_run_that_is_needed_and_not_meant_is_not_added(plan):
    galore = next(run for run in plan.runs if run.row == "galore")
    assert ordered([galore]) == [galore]
