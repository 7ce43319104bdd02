"""The printed values are those of the paper, and stand beside the right rows."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from caged.products.reproduction.printed import Printed, printed_value, tries_what_is_printed
from tests.products.reproduction.studied import PLAN, runs_of, small_plan, with_section


def test_the_value_of_a_row_in_each_printed_table(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    caged, *_ = runs_of(plan, "caged")
    assert printed_value("main", caged, "niche", "recall@20") == Printed(0.0288, "+19.50%*")
    assert printed_value("ablations", caged, "all", "ndcg@20") == Printed(0.1674, None)
    assert printed_value("layers", caged, "all", "recall@20") == Printed(0.1257, None)
    (ablated,) = runs_of(plan, "caged-no-momentum")
    assert printed_value("ablations", ablated, "all", "recall@20") == Printed(0.0232, "-81.54%")
    (pinterest,) = runs_of(plan, "lightgcn", protocol="paper", data="pinterest-caged")
    assert printed_value("main", pinterest, "popular", "ndcg@20") == Printed(0.1937, None)


def test_nothing_is_printed_about_other_rows_groups_and_sections(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    caged, *_ = runs_of(plan, "caged")
    (ablated,) = runs_of(plan, "caged-no-momentum")
    assert printed_value("main", ablated, "all", "recall@20") is None
    assert printed_value("ablations", caged, "niche", "recall@20") is None
    assert printed_value("lambda", caged, "all", "recall@20") is None


LAYERS = 'method = "caged"\nvariant = "n"\nvary = { key = "method.estimator_layers", values = [1, 2] }'
RATE = 'method = "caged"\nvariant = "rate"\nvary = { key = "method.eps", values = [1, 2] }'


def test_layers_of_the_estimator_are_those_that_the_row_has(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, with_section("layers", {"caged-n": LAYERS}))
    one, two = (runs_of(plan, f"caged-n-{value}")[0] for value in (1, 2))
    whole = json.loads((resources.files("caged.products.reproduction") / "printed.json").read_text(encoding="utf-8"))
    for run, name in ((one, "1-Layer"), (two, "2-Layers")):
        assert printed_value("layers", run, "all", "recall@20") == Printed(
            *whole["layers"]["Epinions"][name]["recall@20"]
        )
    assert tries_what_is_printed("layers", plan.of("layers"))
    deeper = small_plan(tmp_path, PLAN.replace('"code"', '"code"\nset = ["method.estimator_layers=4"]'))
    assert printed_value("layers", runs_of(deeper, "caged")[0], "all", "recall@20") == Printed(
        *whole["layers"]["Epinions"]["4-Layers"]["recall@20"]
    )


@pytest.mark.parametrize("section", ["layers", "ablations"])
def test_a_section_of_the_same_name_about_something_else_has_nothing_printed(tmp_path: Path, section: str) -> None:
    text = with_section("other", {"caged-rate": RATE.replace("[1, 2]", "[0.1, 1]")})
    plan = small_plan(tmp_path, text)
    (varied,) = runs_of(plan, "caged-rate-1")
    assert printed_value(section, varied, "all", "recall@20") is None
    assert not tries_what_is_printed(section, plan.of("other"))
    set_too = RATE.replace("[1, 2]", "[1]") + '\nset = ["method.estimator_layers=2", "method.without=momentum"]'
    (also,) = runs_of(small_plan(tmp_path, with_section("other", {"caged-rate": set_too})), "caged-rate-1")
    assert printed_value(section, also, "all", "recall@20") is None
    assert tries_what_is_printed("ablations", plan.of("ablations"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('method = "caged"\nvariant = "code"', 'method = "ease"'),
        ('variant = "code"', 'set = ["method.likelihood=constant"]'),
        ('variant = "code"', 'set = ["method.without=momentum"]'),
    ],
)
def test_a_row_of_the_same_name_that_is_another_method_or_control_has_nothing_printed(
    tmp_path: Path, before: str, after: str
) -> None:
    caged, *_ = runs_of(small_plan(tmp_path, PLAN.replace(before, after)), "caged")
    assert printed_value("main", caged, "all", "recall@20") is None
    assert printed_value("layers", caged, "all", "recall@20") is None


def test_the_printed_tables_are_whole() -> None:
    values = json.loads((resources.files("caged.products.reproduction") / "printed.json").read_text(encoding="utf-8"))
    for methods in values["main"].values():
        assert len(methods) == 9
        for name, groups in methods.items():
            assert list(groups) == ["all", "niche", "popular"]
            for metrics in groups.values():
                for metric, (value, change) in metrics.items():
                    below = methods["LightGCN"]
                    assert (change is None) == (name == "LightGCN")
                    assert 0 < value < 1, metric
                    assert below["all"]["recall@20"][0] > below["niche"]["recall@20"][0]
    assert [len(values[name]["Epinions"]) for name in ("ablation", "layers")] == [4, 4]


def test_printed_changes_follow_from_printed_values_apart_from_those_that_are_named() -> None:
    values = json.loads((resources.files("caged.products.reproduction") / "printed.json").read_text(encoding="utf-8"))
    odd = []
    for dataset, methods in values["main"].items():
        for name, groups in methods.items():
            for group, metrics in groups.items():
                for metric, (value, change) in metrics.items():
                    base = methods["LightGCN"][group][metric][0]
                    if change and abs(float(change.rstrip("%*")) - 100 * (value / base - 1)) > 0.06:
                        odd.append((dataset, name, group, metric))
    assert odd == [
        ("MovieLens", "MACR", "niche", "recall@20"),
        ("Pinterest", "AdvDrop", "popular", "ndcg@20"),
    ]
