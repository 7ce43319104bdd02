"""`docs/reproduction.md` says what the records say, and nothing about what was not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.errors import RunError
from caged.products.study import read_plan
from tests.products.reproduction.studied import runs_of, small_plan, write_record
from tools import reproduction_doc
from tools.marked import arguments_of
from tools.reproduction_doc import updated
from tools.reproduction_effects import (
    Study,
    densities,
    groups,
    ndcg,
    negatives,
    released,
    seeds,
    selection,
    without_gpu,
)

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reproduction.md"
COMMAND = "python -m tools.reproduction_doc docs/reproduction.md"


@pytest.fixture
def in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / "results").is_dir() or not (ROOT / "studies").is_dir():
        pytest.skip("the recorded results are not part of this copy")
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("in_the_clone")
def test_the_document_is_up_to_date() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert updated(text, Path("results")) == text, f"run {COMMAND}"
    assert COMMAND in text
    assert set(arguments_of(text, "effect")) == set(reproduction_doc.EFFECTS)
    assert {"main epinions-caged", "main ml-1m-caged", "main pinterest-caged"} <= set(arguments_of(text, "table"))


@pytest.mark.usefixtures("in_the_clone")
def test_pinterest_is_labelled_wherever_it_stands() -> None:
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line.startswith(("|", "**", "- ")) and "Pinterest" in line:
            assert "37,501 of 55,186 users" in line


@pytest.mark.usefixtures("in_the_clone")
@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("effect: nothing", "there is no effect 'nothing'"),
        ("findings: nothing", "there are no findings 'nothing'"),
        ("table: main nowhere", "has no section 'main' on dataset 'nowhere'"),
    ],
)
def test_an_unknown_marker_is_refused(marker: str, words: str) -> None:
    with pytest.raises(RunError, match=words):
        updated(f"<!-- {marker} -->\n<!-- end -->\n", Path("results"))


def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str) -> str:
    monkeypatch.setattr(reproduction_doc, "PLAN", tmp_path / "plan.toml")
    return updated(f"<!-- {marker} -->\n<!-- end -->\n", tmp_path / "results")


def test_findings_follow_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = small_plan(tmp_path)
    assert "not recorded. Nothing is recorded yet." in document(tmp_path, monkeypatch, "findings: levels")
    for row, value in (("lightgcn", 0.1239), ("caged", 0.13)):
        write_record(plan, runs_of(plan, row, protocol="paper")[0], value)
        for run in runs_of(plan, row):
            if run.seed <= 3:
                write_record(plan, run, value - 0.001 * run.seed)
    levels = document(tmp_path, monkeypatch, "findings: levels")
    assert "- LightGCN, Recall@20, all items: reproduced. On Epinions 0.1239 (printed 0.1239, 0.0%)." in levels
    assert "- CAGED, Recall@20, all items: close. On Epinions 0.1300 (printed 0.1257, +3.4%)." in levels
    gains = document(tmp_path, monkeypatch, "findings: gains")
    assert "all items: reproduced. On Epinions +4.9% (printed +1.45%*)." in gains
    assert "niche items: less than half of it. On Epinions +4.9% (printed +19.50%*)." in gains
    honest = document(tmp_path, monkeypatch, "findings: honest")
    assert "On Epinions +5.0%, and the interval over 3 seeds [+3.1, +6.9] lies above zero." in honest
    ablations = document(tmp_path, monkeypatch, "findings: ablations")
    assert "Without momentum: not recorded (printed -81.54%)." in ablations
    (without,) = (run for run in runs_of(plan, "caged-no-momentum") if run.seed == 1)
    for value, words in (
        (
            0.127,
            "no more than another seed changes. -1.6% on Epinions (printed -81.54%): 0.1270, where 3 seeds of CAGED "
            "reach 0.1270 to 0.1290.",
        ),
        (0.05, "reproduced. -61.2% on Epinions (printed -81.54%)."),
    ):
        write_record(plan, without, value)
        assert f"- Without momentum: {words}" in document(tmp_path, monkeypatch, "findings: ablations")


def test_effects_are_gaps_until_something_is_recorded(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    study = Study.read(plan.path, plan.results)
    for effect in (released, selection, ndcg, groups, without_gpu, negatives, densities):
        assert "not recorded" in effect(study)
    assert "| Epinions | honest | LightGCN | 0 | - | - | +1.45%* |" in seeds(study)


def test_effects_hold_the_numbers_of_the_records(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    history = [{"stage": "train", "epochs": [1, 2, 3], "values": [0.1, 0.12, 0.1]}]
    for row, value in (("lightgcn", 0.1), ("caged", 0.11)):
        write_record(plan, runs_of(plan, row, protocol="paper")[0], value, history=history)
        for run in runs_of(plan, row):
            if run.seed < 3:
                write_record(plan, run, value + 0.001 * run.seed, training={"epochs": 7})
    study = Study.read(plan.path, plan.results)
    assert "| LightGCN | NVIDIA H200 | 7 | 1.5 | 0.1010 | 0.1010 |" in without_gpu(study)
    assert "| Epinions | CAGED | Recall@20, all | 0.1257 | 0.1100 | -12.5% | +1.45%* | +10.0% |" in released(study)
    assert "| Epinions | all | +1.45%* | +10.0% | +9.9% |" in selection(study)
    assert "| Epinions | +20.0% | +20.0% |" in selection(study)  # 0.12 beside two values of 0.1
    assert "| Epinions | LightGCN | niche | 0.0900 | 0.0900 | 1.00 | 0.0187 |" in ndcg(study)
    assert "| Epinions | honest | LightGCN | 2 | 0.7% | 0.1010 to 0.1020 | +1.45%* |" in seeds(study)


def test_densities_are_read_off_the_bins(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    before = {"name": "before", "updates": 0, "mean": 0.3, "above": 0.0, "values": [2.0, 1.0, 0.5, 0.5]}
    after = {"name": "after", "updates": 7, "mean": 0.6, "above": 0.25, "values": [1.0, 0.0, 1.0, 1.0]}
    beyond = {"name": "beyond", "updates": 9, "mean": 2.5, "above": 0.5, "values": [0.0, 0.0, 0.0, 2.0]}
    write_record(plan, runs_of(plan, "caged")[0], 0.1, densities=[before, after, beyond])
    text = densities(Study.read(plan.path, plan.results))
    assert "| Epinions | before | 0 | 0.300 | 25.0% | 30.0% |" in text  # 0.15 is three fifths of the first bin
    assert "| Epinions | after | 7 | 0.600 | 75.0% | 25.0% |" in text  # a quarter lies above 1
    assert "| Epinions | beyond | 9 | 2.500 | 100.0% | not recorded |" in text  # half the mean lies above 1, too


def test_densities_of_a_part_of_caged_are_not_those_of_caged(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    curve = {"name": "before", "updates": 0, "mean": 0.3, "above": 0.0, "values": [2.0, 1.0, 0.5, 0.5]}
    write_record(plan, runs_of(plan, "caged-no-momentum")[0], 0.1, densities=[curve])
    assert "before" not in densities(Study.read(plan.path, plan.results))


REPLAYED = """
title = "Negatives"
results = "results"

[datasets.yelp2018-ood]

[rows.lightgcn-fresh]
method = "lightgcn"

[rows.advdrop]
method = "advdrop"

[sections.negatives]
about = "Fresh ones."

[[sections.negatives.grids]]
datasets = ["yelp2018-ood"]
protocols = ["honest"]
rows = ["lightgcn-fresh", "advdrop"]
"""


def test_both_tests_say_who_is_ahead(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(REPLAYED)
    plan = read_plan(tmp_path / "plan.toml")
    for run, natural, balanced in zip(plan.runs, (0.1, 0.08), (0.01, 0.012), strict=True):
        write_record(plan, run, natural, extra_tests={"test_ood": {"recall@20": balanced}})
    text = negatives(Study.read(plan.path, plan.results))
    assert "| fresh | natural | 0.1000 | 0.0800 | -20.0% |" in text
    assert "| fresh | balanced | 0.0100 | 0.0120 | +20.0% |" in text
    assert "| replayed | natural | not recorded | not recorded | not recorded |" in text


def test_the_command_rewrites_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_plan(tmp_path)
    monkeypatch.setattr(reproduction_doc, "PLAN", tmp_path / "plan.toml")
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- table: lambda epinions-caged all -->\nold\n<!-- end -->\nafter\n")
    reproduction_doc.main([str(path), "--results", str(tmp_path / "results")])
    text = path.read_text()
    assert "| CAGED, lambda 1.4 | 0 | not run |" in text
    assert "niche items" not in text
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
