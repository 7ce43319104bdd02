"""`studies/paper.toml`: every run of it can be started, and every record below `results` is of one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.data.known import DATASETS
from caged.products.study import chosen, read_plan, recorded
from caged.products.study.records import difference, specification
from tests.cli.invoke import caged

ROOT = Path(__file__).parents[2]
PLAN = read_plan(ROOT / "studies" / "paper.toml")
RECORDS = sorted((ROOT / "results").glob("*/*/*/seed*.json"))
PRINTED = ("lightgcn", "advdrop", "galore", "apda", "adjnorm", "reg", "ips", "macr", "caged")


def test_a_record_is_of_the_run_that_the_plan_says():
    of_plan = {one.path.resolve(): one for one in recorded(PLAN.runs, PLAN.results).values()}
    assert len(RECORDS) > 100
    for record in RECORDS:
        found = of_plan[record]
        assert found.state != "other", found.reason
        assert difference(found.run, found.content) is None, record


def test_every_run_can_be_started():
    for run in PLAN.runs:
        if run.kind == "train":
            assert specification(run).method == run.method
        assert run.data in DATASETS


def test_records_of_every_age_make_tables():
    found = caged("results", "table", "results", cwd=ROOT)
    assert found.code == 0, found.err
    assert "trained with different settings" not in found.err  # of options that a record is older than


def test_what_chance_showed_is_judged_on_one_half_in_every_row():
    """The other half chose the values of softmax."""
    halves = {run.row: specification(run).eval.shown_half for run in chosen(PLAN, ["kuairand"])}
    assert len(halves) > 10
    assert set(halves.values()) == {"second"}


def rows(*words, seeds=None):
    return {run.row for run in chosen(PLAN, words, seeds)}


@pytest.mark.parametrize("dataset", ["epinions", "movie"])
@pytest.mark.parametrize("protocol", ["paper", "honest"])
def test_the_main_table_has_the_printed_methods(dataset, protocol):
    found = rows(dataset, protocol, "main")
    assert found >= {*PRINTED, "caged-constant", "softmax"}
    if protocol == "honest":
        assert found >= {"lightgcn-adjusted", "ease"}


def test_three_seeds_on_epinions_and_for_the_main_rows_of_movielens():
    assert {run.seed for row in PRINTED for run in chosen(PLAN, ["epinions", "honest", "main", row])} == {1, 2, 3}
    for row in (*PRINTED, "caged-constant", "softmax"):
        assert len(chosen(PLAN, ["epinions", "honest", "main", row])) == 3
    for row in ("lightgcn", "caged", "caged-constant", "softmax"):
        assert len(chosen(PLAN, ["movie", "honest", "main", row])) == 3


def test_the_studies_of_caged_cover_the_printed_values():
    values = {
        section: {float(run.value) for run in PLAN.of(section) if run.value} for section in ("lambda", "beta", "layers")
    }
    config = specification(next(run for run in PLAN.of("lambda") if run.row == "caged")).config
    grid = {0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4}
    assert values["lambda"] | {config.lam} == grid
    assert values["beta"] | {config.beta} == grid
    assert values["layers"] | {config.estimator_layers} == {1, 2, 3, 4}
    assert len(rows("ablations")) == 4


def test_a_newcomer_has_two_runs():
    found = chosen(PLAN, ["epinions", "honest", "main", "lightgcn", "softmax"], seeds=1)
    assert [run.name for run in found] == ["epinions-honest-lightgcn-1", "epinions-honest-softmax-1"]


def test_replayed_negatives_stand_beside_fresh_ones():
    found = {run.row: specification(run).train.negatives for run in PLAN.of("negatives")}
    assert found == {
        "lightgcn-fresh": "fresh",
        "lightgcn-replayed": "replayed",
        "advdrop": "fresh",
        "advdrop-replayed": "replayed",
    }
    starts = {specification(run).config.table_init for run in PLAN.of("negatives")}
    assert starts == {"xavier"}
