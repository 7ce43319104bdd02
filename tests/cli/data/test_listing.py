"""`caged data list`."""

from __future__ import annotations

import json
from pathlib import Path

from caged.data.known.datasets import DATASETS
from tests.cli.invoke import caged


def test_list_shows_sizes_terms_homes_and_what_is_here(root: Path) -> None:
    (root / "gowalla").mkdir()
    for part in ("train", "test"):
        (root / "gowalla" / f"{part}.txt.gz").touch()
    outcome = caged("data", "list")
    assert outcome.code == 0
    sizes, homes, terms = (
        {line.split()[0]: line for line in table.splitlines()} for table in outcome.out.split("\n\n")
    )
    assert set(DATASETS) < set(sizes)
    assert sizes["gowalla"].split()[1:] == ["29,858", "40,981", "1,027,370", "yes"]
    assert sizes["yelp2018"].split()[4] == "no"
    assert sizes["pinterest-caged"].startswith("pinterest-caged (a part)")
    assert homes["ml-1m"].split() == ["ml-1m", "https://grouplens.org/datasets/movielens/1m/", "none"]
    assert "no commercial use" in terms["ml-1m"]
    assert str(root) in outcome.err


def test_list_as_json(root: Path) -> None:
    listed = json.loads(caged("data", "list", "--json").out)
    assert listed["data_folder"] == str(root)
    rows = {row["name"]: row for row in listed["datasets"]}
    assert set(rows) == set(DATASETS)
    assert all(row["verified"] is None for row in rows.values())
    assert rows["pinterest-caged"]["partial"].startswith("37,501 of 55,186 users")
    assert rows["pinterest-caged"]["downloads"] == []
    assert rows["coat"]["fingerprints"] == DATASETS["coat"].fingerprints
