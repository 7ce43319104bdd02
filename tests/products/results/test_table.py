"""Means, intervals, places and stars."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.errors import CagedError
from caged.evaluation.significance import holm, welch_test
from caged.products.results.reading import read_results
from caged.products.results.table import Cell, ResultsTable, results_tables
from tests.products.results.recorded import NOISE, record, several

CLOSE = {("a", "lightgcn"): 0.1, ("a", "ips"): 0.2, ("a", "reg"): 0.1005, ("b", "lightgcn"): 0.3, ("b", "ips"): 0.2}


def table(root: Path, metrics: list[str], **options: object) -> ResultsTable:
    (found,) = results_tables(read_results(root, **options), metrics)  # type: ignore[arg-type]
    return found


def cell(found: ResultsTable, method: str, column: int) -> Cell:
    shown = found.rows[method][column]
    assert shown is not None
    return shown


def test_a_cell_is_the_mean_over_seeds_with_students_interval(tmp_path: Path) -> None:
    found = cell(table(several(tmp_path, CLOSE), ["recall@20"]), "LightGCN", 0)
    assert found.mean == pytest.approx(0.1)
    assert found.seeds == 5
    assert found.half == pytest.approx(2.7764451 * 0.00158113883 / 5**0.5)  # t(0.975, 4) * sd / sqrt n


def test_two_seeds_have_no_interval(tmp_path: Path) -> None:
    assert cell(table(several(tmp_path, CLOSE, seeds=(1, 2)), ["recall@20"]), "LightGCN", 0).half is None


def test_best_and_second_go_by_the_direction_of_the_metric(tmp_path: Path) -> None:
    found = table(several(tmp_path, CLOSE), ["recall@20", "gini@20", "arp@20"], datasets=["a"])
    places = {name: [one and one.place for one in cells] for name, cells in found.rows.items()}
    assert places == {
        "LightGCN": [None, None, None],
        "IPS": ["best", "best", None],  # more recall, less gini; arp only describes
        "Reg": ["second", "second", None],
    }


def test_who_looks_equal_shares_the_place(tmp_path: Path) -> None:
    several(tmp_path, {("a", "lightgcn"): 0.3, ("a", "ips"): 0.30001, ("a", "reg"): 0.1}, seeds=(1,))
    found = table(tmp_path, ["recall@20"])
    assert [cells[0] and cells[0].place for cells in found.rows.values()] == ["best", "best", "second"]


def test_stars_are_welchs_t_after_holm_over_the_whole_table(tmp_path: Path) -> None:
    found = table(several(tmp_path, CLOSE), ["recall@20"])
    base, close = ([value + one for one in NOISE] for value in (0.1, 0.1005))
    raw = welch_test(base, close).p
    assert found.tests == 3  # ips and reg on a, ips on b
    assert holm([0.0, raw, 0.0])[1] == raw > 0.05
    assert [cell(found, "IPS", 0).sign, cell(found, "IPS", 1).sign] == ["better", "worse"]
    assert cell(found, "Reg", 0).sign is None
    assert cell(found, "LightGCN", 0).sign is None
    assert found.rows["Reg"][1] is None  # nothing recorded there


def test_four_seeds_give_no_stars(tmp_path: Path) -> None:
    found = table(several(tmp_path, CLOSE, seeds=(1, 2, 3, 4)), ["recall@20"])
    assert found.tests == 0
    assert all(one is None or one.sign is None for cells in found.rows.values() for one in cells)


def test_protocols_never_share_a_table(tmp_path: Path) -> None:
    record(tmp_path, "a", "ips", metrics={"recall@20": 0.1})
    record(tmp_path, "a", "ips", protocol="paper", metrics={"recall@20": 0.9})
    tables = results_tables(read_results(tmp_path))
    assert [(one.protocol, cell(one, "IPS", 0).mean) for one in tables] == [("honest", 0.1), ("paper", 0.9)]


def test_another_test_part_cannot_share_a_column(tmp_path: Path) -> None:
    record(tmp_path, "a", "ips")
    record(tmp_path, "a", "reg", fingerprints={"train": "a-train", "test": "other"})
    with pytest.raises(CagedError, match="different parts of a, so they cannot share a column"):
        results_tables(read_results(tmp_path))


def test_unknown_metrics_are_refused(tmp_path: Path) -> None:
    record(tmp_path, "a", "ips")
    with pytest.raises(CagedError, match="unknown metric 'ndcg@20'"):
        results_tables(read_results(tmp_path), ["ndcg@20"])


def test_datasets_have_the_names_of_papers_unless_two_share_one(tmp_path: Path) -> None:
    record(tmp_path, "epinions-caged", "ips")
    record(tmp_path, "ours", "ips")
    assert table(tmp_path, ["recall@20"]).datasets == [("Epinions", 1), ("ours", 1)]
    for name in ("ml-1m", "ml-1m-caged"):
        record(tmp_path, name, "ips")
    assert [name for name, _ in table(tmp_path, ["recall@20"]).datasets] == ["Epinions", "ml-1m", "ml-1m-caged", "ours"]
