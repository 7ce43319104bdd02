"""Recorded results as entries of a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.errors import CagedError
from caged.products.compare import compare
from caged.products.compare.entries import read_entry
from tests.products.results.recorded import record, several


def test_recorded_results_are_compared_over_seeds(tmp_path: Path) -> None:
    several(tmp_path, {("a", "lightgcn"): 0.1, ("a", "ips-strong"): 0.2})
    files = [*sorted(tmp_path.glob("a/honest/lightgcn/*.json")), *sorted(tmp_path.glob("a/honest/ips-*/*.json"))]
    found = compare(files, metrics=["recall@20"])
    assert [(group.name, len(group.entries)) for group in found.methods] == [("lightgcn", 5), ("ips-strong", 5)]
    (difference,) = found.differences
    assert difference.difference == pytest.approx(0.1)
    assert difference.over_users is None
    assert difference.verdict == "better"


def test_other_datasets_are_refused_by_their_names(tmp_path: Path) -> None:
    files = [record(tmp_path, "epinions", "ips"), record(tmp_path, "gowalla", "reg")]
    with pytest.raises(CagedError, match=r"measured on epinions and .* on gowalla, so their numbers cannot") as raised:
        compare(files)
    assert "fingerprint" not in str(raised.value)


def test_a_record_older_than_an_option_ran_with_its_default(tmp_path: Path) -> None:
    old = read_entry(record(tmp_path, "a", "lightgcn"))
    assert (old.settings["method.layers"], old.settings["train.epochs"]) == (3, 2)
    assert (old.settings["method.loss"], old.settings["train.negatives"]) == ("bpr", "fresh")


def test_a_run_that_did_not_finish_is_refused(tmp_path: Path) -> None:
    file = record(tmp_path, "a", "ips", status="failed", metrics=None)
    with pytest.raises(CagedError, match=r"seed1.json is not finished \(status 'failed'\)"):
        read_entry(file)


@pytest.mark.parametrize("content", ["[]", '{"status": "finished"}'])
def test_other_json_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "other.json").write_text(content)
    with pytest.raises(CagedError, match=r"other.json is not a recorded result"):
        read_entry(tmp_path / "other.json")
