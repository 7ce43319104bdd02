"""From a log to recommendations through every command: only the identifiers of the log are ever seen."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.invoke import Outcome, caged, tiny

pytest.importorskip("polars", reason="caged data import needs polars")

USERS, ITEMS = 24, 15
Id = str | int

# Integers with gaps in no order; text whose order differs from that of the integers; text of many scripts.
KINDS: dict[str, tuple[Callable[[int], Id], Callable[[int], Id]]] = {
    "integer": (lambda user: 10**12 + 37 * ((user * 7) % USERS), lambda item: 3 * item),
    "string": (lambda user: f"user-{user}", lambda item: f"{item:03d}"),
    "unicode": (
        lambda user: "\u00e9\u4e2d\U0001f40d\u0627"[user % 4] + f' {user}, "quoted"',
        lambda item: f"\u017b\u00f3\u0142w {item}\t{chr(0x3B1 + item)}",
    ),
    "mixed": (lambda user: 100 + user, lambda item: f"item {item}"),
}


def a_log(user_id: Callable[[int], Id], item_id: Callable[[int], Id]) -> dict[Id, set[Id]]:
    generator = np.random.default_rng(5)
    chosen = {user: generator.choice(ITEMS, size=generator.integers(6, 10), replace=False) for user in range(USERS)}
    return {user_id(user): {item_id(int(item)) for item in items} for user, items in chosen.items()}


def write(log: dict[Id, set[Id]], path: Path) -> None:
    pairs = [(user, item) for user, items in log.items() for item in sorted(items, key=str)]
    if path.suffix == ".parquet":
        table = {"user_id": [user for user, _ in pairs], "item_id": [item for _, item in pairs]}
        pq.write_table(pa.table(table), path)
        return
    with path.open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows([("user_id", "item_id"), *pairs])


def succeeded(*arguments: str | Path, cwd: Path) -> Outcome:
    done = caged(*arguments, cwd=cwd)
    assert done.code == 0, done.err
    return done


def by_user(table: pa.Table) -> dict[Id, list[Id]]:
    lists: dict[Id, list[Id]] = defaultdict(list)
    for row in table.to_pylist():
        lists[row["user_id"]].append(row["item_id"])
    return dict(lists)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_import_split_train_recommend(kind: str, suffix: str, tmp_path: Path) -> None:
    log = a_log(*KINDS[kind])
    all_items = {item for items in log.values() for item in items}
    write(log, tmp_path / f"log{suffix}")

    succeeded("data", "import", f"log{suffix}", "-o", "imported", cwd=tmp_path)
    succeeded("data", "split", "imported", "-o", "split", cwd=tmp_path)
    parts = {
        part: by_user(pq.read_table(tmp_path / "split" / f"{part}.parquet")) for part in ("train", "valid", "test")
    }
    for user, items in log.items():
        given = [item for part in parts.values() for item in part.get(user, [])]
        assert sorted(given, key=str) == sorted(items, key=str)

    options = [*tiny("lightgcn"), "--set", "eval.k=5", "--set", "train.epochs=1"]
    succeeded("train", "--data", "split", "--method", "lightgcn", "--out", "run", *options, cwd=tmp_path)
    succeeded("recommend", "run", "--all-users", "-k", "4", "-o", "recs.parquet", cwd=tmp_path)
    lists = by_user(pq.read_table(tmp_path / "recs.parquet"))
    assert set(lists) == set(parts["train"]) == set(log)
    for user, items in lists.items():
        assert len(set(items)) == 4
        assert set(items) <= all_items - set(parts["train"][user])

    wanted = sorted(log, key=str)[:3]
    (tmp_path / "users.txt").write_text("\n".join(map(str, wanted)) + "\n", encoding="utf-8")
    shown: list[dict[str, Any]] = json.loads(
        succeeded("recommend", "run", "--users-file", "users.txt", "-k", "4", "--json", cwd=tmp_path).out
    )
    assert by_user(pa.Table.from_pylist(shown)) == {user: lists[user] for user in wanted}


def test_training_on_the_imported_folder_is_training_on_the_log(tmp_path: Path) -> None:
    """The same split, so the same lists, whichever of the two is given."""
    write(a_log(*KINDS["unicode"]), tmp_path / "log.csv")
    succeeded("data", "import", "log.csv", "-o", "imported", cwd=tmp_path)
    recommended = []
    for data in ("log.csv", "imported"):
        options = [*tiny("lightgcn"), "--set", "eval.k=5"]
        succeeded("train", "--data", data, "--method", "lightgcn", "--out", f"run-{data}", *options, cwd=tmp_path)
        recommended.append(pq.read_table(tmp_path / f"run-{data}" / "recommendations.parquet"))
    assert recommended[0].equals(recommended[1])
