"""`caged recommend`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import caged as library
from tests.cli.invoke import caged, train
from tests.conftest import Pair, write_log


def rows(outcome_out: str) -> list[dict[str, Any]]:
    return list(json.loads(outcome_out))


def test_recommend_to_some_users(finished_run: Path, tmp_path: Path) -> None:
    expected = library.load(finished_run).recommend(["u03", "u11"], k=4).to_pylist()
    outcome = caged("recommend", finished_run, "--users", "u11, u03", "-k", "4", "--json")
    assert rows(outcome.out) == expected
    assert outcome.err == ""
    (tmp_path / "users.txt").write_text("u11\n\nu03\n")
    again = caged("recommend", finished_run, "--users-file", tmp_path / "users.txt", "-k", "4", "--json")
    assert again.out == outcome.out
    table = caged("recommend", finished_run, "--users", "u11,u03", "-k", "4").out.splitlines()
    assert table[0].split() == ["user_id", "rank", "item_id", "score"]
    assert [line.split()[:3] for line in table[1:]] == [
        [row["user_id"], str(row["rank"]), row["item_id"]] for row in expected
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_recommend_into_a_file(suffix: str, finished_run: Path, tmp_path: Path) -> None:
    path = tmp_path / f"recs{suffix}"
    outcome = caged("recommend", finished_run, "--all-users", "-k", "3", "-o", path)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"180 rows written to {path}\n"
    assert list(tmp_path.iterdir()) == [path]
    table = pq.read_table(path) if suffix == ".parquet" else pa_csv.read_csv(path)
    expected = library.load(finished_run).recommend(k=3)
    for name in ("user_id", "item_id", "rank"):
        assert table[name].to_pylist() == expected[name].to_pylist()
    assert table["score"].to_pylist() == pytest.approx(expected["score"].to_pylist(), abs=1e-6)


def test_unknown_users(finished_run: Path, pairs: list[Pair]) -> None:
    arguments = ("recommend", finished_run, "--users", "u01,zoe,adam", "-k", "5", "--json")
    assert caged(*arguments).code == 2
    skipped = rows(caged(*arguments, "--unknown", "skip").out)
    assert {row["user_id"] for row in skipped} == {"u01"}
    popular = rows(caged(*arguments, "--unknown", "popular").out)
    assert popular[:5] == skipped
    train = library.load(finished_run).artefact.train
    best = sorted(range(train.item_count), key=lambda item: (-train.item_degrees[item], item))[:5]
    for number, user in enumerate(["adam", "zoe"]):
        own = popular[5 + 5 * number : 10 + 5 * number]
        assert {row["user_id"] for row in own} == {user}
        assert [row["item_id"] for row in own] == train.item_ids.external(best).to_pylist()
        assert [row["score"] for row in own] == [float(train.item_degrees[item]) for item in best]
        assert [row["rank"] for row in own] == [1, 2, 3, 4, 5]


def test_unknown_users_where_ids_are_integers(pairs: list[Pair], tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [(str(int(user[1:])), str(int(item[1:]))) for user, item in pairs])
    train(log, tmp_path / "run", method="mostpop")
    arguments = ("recommend", tmp_path / "run", "-k", "2", "--json")
    assert [row["user_id"] for row in rows(caged(*arguments, "--users", "7,3").out)] == [3, 3, 7, 7]
    popular = rows(caged(*arguments, "--users", "7,900", "--unknown", "popular").out)
    assert [row["user_id"] for row in popular] == [7, 7, 900, 900]
    assert [row["user_id"] for row in rows(caged(*arguments, "--users", "7,zoe", "--unknown", "skip").out)] == [7, 7]
    mixed = caged(*arguments, "--users", "7,zoe", "--unknown", "popular")
    assert mixed.code == 2
    assert "another type" in mixed.error
    huge = caged(*arguments, "--users", "99999999999999999999")
    assert huge.code == 2
    assert "1 of the users asked for are unknown, e.g. '99999999999999999999'" in huge.error
