"""The tables of a study: what stands beside what, and which marks it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.products.reproduction.cells import Cell, Gap
from caged.products.reproduction.printed import Printed
from caged.products.reproduction.tables import Content, StudyTable, study_tables, tuning_of
from caged.products.study import Plan, read_plan
from tests.products.reproduction.studied import PLAN, records_of, runs_of, small_plan, write_record


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    found = small_plan(tmp_path)
    for row, value in (("lightgcn", 0.1), ("caged", 0.12)):
        (of_paper,) = runs_of(found, row, protocol="paper")
        write_record(found, of_paper, value + 0.01)
        for run in runs_of(found, row):
            if run.seed <= 3:
                write_record(found, run, value + 0.001 * run.seed)
    return found


def table(plan: Plan, name: str) -> StudyTable:
    return next(one for one in study_tables(plan, records_of(plan)) if one.name == name)


def cell(found: StudyTable, row: str, metric: str, source: str, group: str = "all") -> Content:
    names = [one.name for one in found.rows]
    place = next(place for place, one in enumerate(found.columns) if (one.metric, one.source) == (metric, source))
    return found.blocks[group][names.index(row)][place]


def test_printed_value_and_protocols_stand_side_by_side(plan: Plan) -> None:
    found = table(plan, "main-epinions-caged")
    assert [(one.metric, one.source) for one in found.columns] == [
        (metric, source) for metric in ("recall", "ndcg") for source in ("printed", "paper", "honest")
    ]
    assert list(found.blocks) == ["all", "niche", "popular"]
    assert cell(found, "caged", "recall", "printed") == Printed(0.1257, "+1.45%*")
    of_paper, honest = (cell(found, "caged", "recall", one) for one in ("paper", "honest"))
    assert isinstance(of_paper, Cell)
    assert isinstance(honest, Cell)
    assert (of_paper.mean, of_paper.seeds) == (pytest.approx(0.13), 1)
    assert of_paper.change == pytest.approx(100 * (0.13 / 0.11 - 1))
    assert (honest.mean, honest.seeds, honest.best) == (pytest.approx(0.122), 3, True)
    assert cell(found, "ips", "recall", "honest", "niche") == Gap("not run")
    assert found.runs == (8, 12)
    assert found.gpu_minutes == pytest.approx(8 * 1.5)


def test_ndcg_under_paper_is_that_of_the_released_code(plan: Plan) -> None:
    found = table(plan, "main-epinions-caged")
    keys = {one.source: one.key("niche") for one in found.columns if one.metric == "ndcg"}
    assert (keys["paper"], keys["honest"]) == ("ndcg_hits100@20/niche", "ndcg@20/niche")


def test_every_test_of_a_table_is_in_one_family(plan: Plan) -> None:
    users = [0.01 * place for place in range(30)]
    for row, shift in (("lightgcn", 0.0), ("caged", 0.05)):
        for run in runs_of(plan, row):
            if run.seed == 1:
                noisy = [value + shift + 0.001 * (place % 3) for place, value in enumerate(users)]
                write_record(plan, run, 0.1, users=noisy if row == "caged" else users)
    found = table(plan, "main-epinions-caged")
    assert dict(found.tests) == {"users": 6, "seeds": 0}  # one row, two metrics, three groups
    assert found.untested == {"paper": ("CAGED",)}
    shown = cell(found, "caged", "ndcg", "honest", "popular")
    assert isinstance(shown, Cell)
    assert (shown.over, shown.sign) == ("users", "better")


def test_more_seeds_of_another_section_are_shown(plan: Plan) -> None:
    for row in ("lightgcn", "caged"):
        for run in runs_of(plan, row):
            if run.seed > 3:
                write_record(plan, run, 0.1 + 0.001 * run.seed + (0.02 if row == "caged" else 0.0))
    found = table(plan, "main-epinions-caged")
    shown = cell(found, "caged", "recall", "honest")
    assert isinstance(shown, Cell)
    assert (shown.seeds, shown.over, shown.sign) == (5, "seeds", "better")
    assert dict(found.tests) == {"users": 0, "seeds": 6}
    assert found.runs == (8, 12)  # those of the section itself


def test_a_study_is_compared_with_caged_and_a_curve_stands_in_its_order(plan: Plan) -> None:
    ablations = table(plan, "ablations-epinions-caged")
    assert (ablations.base, list(ablations.blocks)) == ("CAGED", ["all", "niche"])
    assert cell(ablations, "caged-no-momentum", "recall", "printed") == Printed(0.0232, "-81.54%")
    curve = table(plan, "lambda-epinions-caged")
    assert [row.title for row in curve.rows] == ["CAGED, lambda 0", "CAGED", "CAGED, lambda 1.4"]  # 1.2 in the preset
    assert curve.base == "CAGED"
    assert all(column.source != "printed" for column in curve.columns)


def test_a_part_of_a_dataset_says_so(plan: Plan) -> None:
    assert table(plan, "main-pinterest-caged").dataset == "Pinterest (37,501 of 55,186 users)"


def test_a_table_says_what_was_set_and_tuned(plan: Plan) -> None:
    found = table(plan, "main-epinions-caged")
    assert found.tuning.startswith("No row has values of caged tune")
    assert found.settings == {"IPS": ("method.eta=0.25",)}
    softmax = PLAN.replace('method = "ips"\nset = ["method.eta=0.25"]', 'method = "softmax"\nset = ["train.epochs=9"]')
    plan.path.write_text(softmax)
    (settings,) = table(read_plan(plan.path), "main-epinions-caged").settings.values()
    assert settings == ("train.epochs=9", "method.l2=1e-05")  # the preset has another for cosines
    some = PLAN.replace('variant = "code"', 'variant = "code"\npresets = ["tuned/caged.toml"]')
    every = PLAN.replace('\nmethod = "', '\npresets = ["tuned/x.toml"]\nmethod = "')
    for text, words in ((some, "Not comparable"), (every, "Every row has values that were tuned")):
        plan.path.write_text(text)
        assert tuning_of(read_plan(plan.path).of("main")).startswith(words)


def test_only_some_sections(plan: Plan) -> None:
    found = study_tables(plan, records_of(plan), only=["lambda"])
    assert [one.name for one in found] == ["lambda-epinions-caged"]
    assert found[0].to_json()["blocks"]["all"][0][0] == {"gap": "not run"}
