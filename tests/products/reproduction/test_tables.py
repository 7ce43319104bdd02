"""The tables of a study: what stands beside what, and which marks it has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from caged.evaluation.significance import holm, welch_test
from caged.products.reproduction.cells import Cell, Gap
from caged.products.reproduction.printed import Printed
from caged.products.reproduction.tables import (
    Content,
    StudyTable,
    study_tables,
    tuning_of,
    value_of,
    varied_setting,
)
from caged.products.study import Plan, read_plan
from tests.products.reproduction.studied import PLAN, records_of, runs_of, small_plan, with_section, write_record


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


TUNED = '[tuned]\ndata = "epinions-caged"\nmethods = [{methods}]\n\n[methods.caged]\nlam = 1.0\n'


@pytest.mark.parametrize(
    ("methods", "presets", "words"),
    [
        ('"lightgcn", "caged", "ips"', "FILE", "Every row has values that were tuned on the validation part of epin"),
        ('"caged"', "FILE", "Not comparable: values were tuned on validation, but not those of adjusted, ips, "),
        ("", "FILE", "No row has values of caged tune"),  # somebody's own file
        ("", "tuned_epinions_caged", "Every row has values that were tuned"),  # one that comes along
        ("", "epinions", "No row has values of caged tune"),
    ],
)
def test_tuned_is_what_a_preset_says_it_was_tuned_for(
    methods: str, presets: str, words: str, plan: Plan, tmp_path: Path
) -> None:
    """And rows that have no options, or adjust a tuned one, need nothing more."""
    file = tmp_path / "own.toml"
    file.write_text(TUNED.format(methods=methods) if methods else "[methods.caged]\nlam = 1.0\n")
    added = '[rows.bestsellers]\nmethod = "mostpop"\n\n[rows.adjusted]\nadjust = "lightgcn"\n\n[sections.main]'
    text = PLAN.replace('presets = ["epinions"]', f'presets = ["{presets.replace("FILE", str(file))}"]')
    text = text.replace("[sections.main]", added, 1).replace('"ips"]', '"ips", "bestsellers", "adjusted"]')
    plan.path.write_text(text)
    runs = [run for run in read_plan(plan.path).of("main") if run.dataset == "epinions"]
    assert {"bestsellers", "adjusted"} <= {run.row for run in runs}
    assert tuning_of(runs).startswith(words)


def test_only_some_sections(plan: Plan) -> None:
    found = study_tables(plan, records_of(plan), only=["lambda"])
    assert [one.name for one in found] == ["lambda-epinions-caged"]
    assert found[0].to_json()["blocks"]["all"][0][0] == {"gap": "not run"}


def varied(values: str, key: str, method: str = "caged") -> dict[str, str]:
    return {"tried": f'method = "{method}"\nvariant = "tried"\nvary = {{ key = "{key}", values = {values} }}'}


@pytest.mark.parametrize(
    ("values", "key"),
    [('["constant", "shuffled"]', "method.likelihood"), ("[true, false]", "method.elbo_train_scaled")],
)
def test_values_that_are_no_numbers_make_no_curve_and_stand_in_the_order_of_the_plan(
    tmp_path: Path, values: str, key: str
) -> None:
    plan = small_plan(tmp_path, with_section("words", varied(values, key), others=["caged"]))
    for run in plan.of("words"):
        write_record(plan, run, 0.1)
    records = records_of(plan)
    assert varied_setting([records[run] for run in plan.of("words")]) is None
    found = table(plan, "words-epinions-caged")
    assert [row.name for row in found.rows] == [run.row for run in plan.of("words")]
    assert found.base == "CAGED"


def test_the_row_with_the_preset_is_compared_with_wherever_it_stands(tmp_path: Path) -> None:
    rows = {**varied('["constant"]', "method.likelihood"), "own": 'method = "caged"\nvariant = "own"\ntitle = "Own"'}
    found = table(small_plan(tmp_path, with_section("words", rows, others=[])), "words-epinions-caged")
    assert [row.name for row in found.rows] == ["tried-constant", "own"]
    assert found.base == "Own"


def test_neither_true_nor_false_is_a_number(plan: Plan) -> None:
    members = [one for run, one in records_of(plan).items() if run.row == "caged"]
    assert value_of("method.elbo_train_scaled", members) is None
    assert value_of("method.lam", members) == 1.2


def test_a_row_whose_value_is_a_word_stands_before_the_numbers(tmp_path: Path) -> None:
    text = with_section("batches", varied("[512, 64]", "train.batch_size"))
    plan = small_plan(tmp_path, text.replace('variant = "code"', 'variant = "code"\nset = ["train.batch_size=auto"]'))
    for run in plan.of("batches"):
        write_record(plan, run, 0.1)
    records = records_of(plan)
    members = [records[run] for run in plan.of("batches")]
    assert varied_setting(members) == "train.batch_size"
    base, *others = ([one for one in members if one.run.row == row] for row in ("caged", "tried-512", "tried-64"))
    assert value_of("train.batch_size", base) is None
    assert [value_of("train.batch_size", one) for one in others] == [512, 64]
    assert [row.name for row in table(plan, "batches-epinions-caged").rows] == ["caged", "tried-64", "tried-512"]


def test_a_row_of_a_method_without_the_setting_has_no_value_of_it(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, with_section("beside", varied("[0.5, 1]", "method.lam"), others=["lightgcn"]))
    for run in plan.of("beside"):
        write_record(plan, run, 0.1)
    found = table(plan, "beside-epinions-caged")
    assert [row.name for row in found.rows] == ["lightgcn", "tried-0.5", "tried-1"]


def test_two_rows_that_vary_one_setting_are_no_curve(tmp_path: Path) -> None:
    rows = {f"caged-{name}": varied("[0.5, 1]", "method.lam")["tried"].replace("tried", name) for name in ("a", "b")}
    plan = small_plan(tmp_path, with_section("both", rows))
    records = records_of(plan)
    assert varied_setting([records[run] for run in plan.of("both")]) is None


def test_data_that_is_a_path_is_called_as_the_plan_calls_it(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, PLAN.replace('data = "epinions-caged"', 'data = "logs/shop.csv"'))
    found = table(plan, "main-epinions")
    assert (found.data, found.dataset) == ("epinions", "epinions")


def test_rows_of_one_title_are_told_apart(tmp_path: Path) -> None:
    text = PLAN.replace('title = "IPS"', 'title = "LightGCN"')
    plan = small_plan(tmp_path, text)
    found = table(plan, "main-epinions-caged")
    assert [row.title for row in found.rows] == ["LightGCN (lightgcn)", "CAGED", "LightGCN (ips)"]
    assert found.base == "LightGCN (lightgcn)"
    assert found.settings == {"LightGCN (ips)": ("method.eta=0.25",)}


def test_a_chosen_protocol_stands_alone(plan: Plan) -> None:
    runs = [run for run in plan.of("main") if run.protocol == "honest"]
    both, alone = (
        study_tables(plan, records_of(plan), runs, only=["main"], protocols=chosen)[0] for chosen in ((), ("honest",))
    )
    assert both.protocols == ("paper", "honest")
    assert alone.protocols == ("honest",)


def test_records_that_do_not_count_are_told_with_their_reason(plan: Plan) -> None:
    (of_paper,) = runs_of(plan, "ips", protocol="paper")
    records = records_of(plan)
    records[of_paper] = replace(records[of_paper], state="other", reason="its seed is 3", content={})
    found = next(one for one in study_tables(plan, records) if one.name == "main-epinions-caged")
    assert found.not_counted == {"epinions-caged/paper/ips/seed1.json": "its seed is 3"}
    assert cell(found, "ips", "recall", "paper") == Gap("not counted")
    assert found.to_json()["not_counted"] == found.not_counted


def five_seeds(plan: Plan, changes: dict[str, list[float]]) -> StudyTable:
    """Rows whose values differ from LightGCN's by these, seed by seed."""
    for row, change in {"lightgcn": [0.0] * 5, **changes}.items():
        for run in runs_of(plan, row):
            write_record(plan, run, 0.1 + 0.001 * (run.seed % 3) + change[run.seed - 1])
    return table(plan, "main-epinions-caged")


def test_values_of_p_are_those_of_holm_over_the_whole_table(tmp_path: Path) -> None:
    """A difference that is certain alone, and not among the six tests of its table."""
    plan = small_plan(tmp_path)
    found = five_seeds(plan, {"caged": [0.0016, 0.0014, 0.0015, 0.0017, 0.0013]})
    base = [0.1 + 0.001 * (seed % 3) for seed in range(1, 6)]
    row = [value + change for value, change in zip(base, [0.0016, 0.0014, 0.0015, 0.0017, 0.0013], strict=True)]
    alone = welch_test(base, row).p
    assert 0.05 / 6 < alone < 0.05
    shown = cell(found, "caged", "recall", "honest")
    assert isinstance(shown, Cell)
    assert shown.p == pytest.approx(holm([alone] * 6)[0])
    assert shown.sign is None


def test_who_is_surely_worse_is_called_worse(tmp_path: Path) -> None:
    found = five_seeds(small_plan(tmp_path), {"caged": [-0.03] * 5})
    shown = cell(found, "caged", "recall", "honest")
    assert isinstance(shown, Cell)
    assert shown.p is not None
    assert shown.p < 0.05
    assert shown.sign == "worse"


def test_a_section_called_layers_about_something_else_has_no_printed_column(tmp_path: Path) -> None:
    ours = small_plan(tmp_path, with_section("layers", varied("[0.5, 1]", "method.lam")))
    assert {column.source for column in table(ours, "layers-epinions-caged").columns} == {"honest"}
    theirs = small_plan(tmp_path, with_section("layers", varied("[1, 2]", "method.estimator_layers")))
    assert {column.source for column in table(theirs, "layers-epinions-caged").columns} == {"honest", "printed"}
