"""`caged recommend`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import caged as library
from caged.data.splits import write_split
from tests.cli.invoke import caged, refused, refused_without_a_trace, train
from tests.conftest import Pair, write_log


def rows(outcome_out: str) -> list[dict[str, Any]]:
    return list(json.loads(outcome_out))


def test_recommend_to_some_users(finished_run: Path, tmp_path: Path) -> None:
    expected = library.load(finished_run).recommend(["u11", "u03"], k=4).to_pylist()
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


def test_a_small_catalogue_is_recommended_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "user_id,item_id\n" + "".join(f"{u},{i}\n" for u in range(4) for i in range(u, 8))
    )
    train(tmp_path / "log.csv", tmp_path / "run", method="mostpop")
    done = caged("recommend", tmp_path / "run", "--users", "3", "--json")
    assert done.code == 0, done.err
    assert {row["item_id"] for row in json.loads(done.out)} <= set(range(8))
    refused(caged("recommend", tmp_path / "run", "--users", "3", "-k", "20"), "allowed are 1..8")


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
    for number, user in enumerate(["zoe", "adam"]):
        own = popular[5 + 5 * number : 10 + 5 * number]
        assert {row["user_id"] for row in own} == {user}
        assert [row["item_id"] for row in own] == train.item_ids.external(best).to_pylist()
        assert [row["score"] for row in own] == [float(train.item_degrees[item]) for item in best]
        assert [row["rank"] for row in own] == [1, 2, 3, 4, 5]


def test_unknown_users_where_ids_are_integers(pairs: list[Pair], tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [(str(int(user[1:])), str(int(item[1:]))) for user, item in pairs])
    train(log, tmp_path / "run", method="mostpop")
    arguments = ("recommend", tmp_path / "run", "-k", "2", "--json")
    assert [row["user_id"] for row in rows(caged(*arguments, "--users", "7,3").out)] == [7, 7, 3, 3]
    popular = rows(caged(*arguments, "--users", "7,900", "--unknown", "popular").out)
    assert [row["user_id"] for row in popular] == [7, 7, 900, 900]
    assert [row["user_id"] for row in rows(caged(*arguments, "--users", "7,zoe", "--unknown", "skip").out)] == [7, 7]
    mixed = caged(*arguments, "--users", "7,zoe", "--unknown", "popular")
    assert mixed.code == 2
    assert "another type" in mixed.error
    huge = caged(*arguments, "--users", "99999999999999999999")
    assert huge.code == 2
    assert "1 of the users asked for are unknown, e.g. '99999999999999999999'" in huge.error


def test_allow_and_deny_lists(finished_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "stock.txt").write_text("i30\ni20\n\ni11\nnothing\n")
    (tmp_path / "gone.txt").write_text("i11\n")
    lists = ("--candidates-file", tmp_path / "stock.txt", "--exclude-file", tmp_path / "gone.txt")
    outcome = caged("recommend", finished_run, "--users", "u03", "-k", "2", "--json", *lists)
    expected = library.load(finished_run).recommend("u03", k=2, candidates=["i30", "i20"])
    assert rows(outcome.out) == expected.to_pylist()
    assert "1 of the 4 ids in candidates are unknown to the model and were ignored, e.g. 'nothing'" in caplog.text


def test_lists_that_cannot_be_read(finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    asked = ("recommend", finished_run, "--users", "u03")
    refused(caged(*asked, "--candidates-file", tmp_path / "empty.txt"), "no item id given in --candidates-file")
    refused(caged(*asked, "--exclude-file", tmp_path / "absent.txt"), "cannot read --exclude-file")


def test_titles(pairs: list[Pair], finished_run: Path, tmp_path: Path) -> None:
    refused(caged("recommend", finished_run, "--users", "u03", "--titles"), "has no titles; leave --titles out")
    parts = library.split(library.Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs]))
    write_split(parts, tmp_path / "data")
    names = parts.train.item_ids.values.to_pylist()
    table = pa.table({"item_id": names, "title": [f"The {name}" for name in names]})
    pq.write_table(table, tmp_path / "data" / "items.parquet")
    train(tmp_path / "data", tmp_path / "run", method="mostpop")
    asked = ("recommend", tmp_path / "run", "--users", "u03", "-k", "2")
    assert "title" not in rows(caged(*asked, "--json").out)[0]
    titled = rows(caged(*asked, "--json", "--titles").out)
    assert [row["title"] for row in titled] == [f"The {row['item_id']}" for row in titled]
    header, first, _ = caged(*asked).out.splitlines()
    assert header.split() == ["user_id", "rank", "item_id", "title", "score"]
    assert f"The {titled[0]['item_id']}" in first
    model = library.load(tmp_path / "run")
    assert model.recommend("u03", k=2, titles=True)["title"].to_pylist() == [row["title"] for row in titled]


@pytest.fixture(scope="module")
def odd_names(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a log with ids that hold commas, and what terminals obey."""
    renamed = {"u00": "O'Neil, Pat", "u01": "u\x1b[2J\x9b31m\x07", "i00": "i\x1b]0;gone\x07", "i01": "\u202egnp.exe"}
    folder = tmp_path_factory.mktemp("odd")
    table = {
        "user_id": [renamed.get(user, user) for user, _ in pairs],
        "item_id": [renamed.get(item, item) for _, item in pairs],
    }
    pq.write_table(pa.table(table), folder / "log.parquet")
    train(folder / "log.parquet", folder / "run", method="mostpop")
    return folder / "run"


@pytest.mark.parametrize("users", ["O'Neil, Pat", "u02,O'Neil, Pat", "O'Neil, Pat,u02"])
@pytest.mark.parametrize("unknown", ["error", "skip", "popular"])
def test_an_id_with_a_comma(users: str, unknown: str, odd_names: Path, tmp_path: Path) -> None:
    outcome = caged("recommend", odd_names, "--users", users, "--unknown", unknown)
    refused(outcome, "'O'Neil, Pat' is one id", "--users-file")
    (tmp_path / "users.txt").write_text("O'Neil, Pat\n")
    found = rows(caged("recommend", odd_names, "--users-file", tmp_path / "users.txt", "-k", "2", "--json").out)
    assert [row["user_id"] for row in found] == ["O'Neil, Pat"] * 2


def test_no_id_reaches_a_terminal_raw(odd_names: Path) -> None:
    strange = "u\x1b[2J\x9b31m\x07"
    commands = [
        ["recommend", odd_names, "--all-users", "-k", "40"],
        ["recommend", odd_names, "--all-users", "-k", "40", "--json"],
        ["recommend", odd_names, "--users", f"{strange},nobody\x1b[2J"],
        ["recommend", odd_names, "--users", "\udcff"],  # what Python makes of bytes that are no UTF-8
        ["explain", odd_names, "--user", "u\x1b[2J"],
        ["train", "--data", "no\x1b[2J.csv", "--method", "mostpop", "-v"],
        ["train", "--data", "log.csv", "--method", "no\x1b[2J"],
    ]
    for command in commands:
        outcome = caged(*command)
        text = outcome.out + outcome.err
        assert outcome.code in (0, 2), outcome
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text), command
    table = caged("recommend", odd_names, "--all-users", "-k", "40", "--json").out
    named = {row["user_id"] for row in json.loads(table)} | {row["item_id"] for row in json.loads(table)}
    assert {strange, "i\x1b]0;gone\x07", "\u202egnp.exe"} <= named  # JSON says the same in other words


def test_no_file_in_place_of_what_is_read(finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("u1\n")
    arguments = ["recommend", str(finished_run), "--users-file", "users.csv", "-o", "users.csv"]
    refused_without_a_trace(tmp_path, arguments, "cannot write --out users.csv: the same command reads it")
