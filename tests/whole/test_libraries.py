"""The commands of `docs/audit.md` for other libraries, run as they stand there on what these libraries write."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from tests.cli.invoke import caged
from tests.evaluation.foreign.libraries import LIBRARIES, ROWS

DOCUMENT = Path(__file__).parents[2] / "docs" / "audit.md"
PAIRS = [
    (user, item) for user in range(5) for item in range(10) if (user + item) % 3 == 0
]  # 4 to 0 among them: not all


def command_of(library: str) -> list[str]:
    found = re.search(rf"^\| {library}[^|]*\|[^|]+\| `caged (audit [^|]+)` \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert found, f"{library} has no line in {DOCUMENT.name}"
    return shlex.split(found[1])


def write_train(path: Path, user: str, item: str) -> None:
    """What the lists were learned from, in the format that the name of the file asks for."""
    users, items = np.array(PAIRS).T
    table = pa.table({user: users, item: items})
    if path.suffix == ".npz":
        sparse.save_npz(path, sparse.csr_matrix((np.ones(len(users)), (users, items)), shape=(5, 10)))
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == "":
        path.mkdir()
        pq.write_table(table, path / "part-00000.parquet")
    else:
        separator = "," if path.suffix == ".csv" else "\t"
        names = (f"{user}:token", f"{item}:token") if path.suffix == ".inter" else (user, item)
        path.write_text("".join(f"{separator.join(map(str, row))}\n" for row in [names, *PAIRS]))


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_documented_command_reads_the_lists(library: str, tmp_path: Path) -> None:
    command = command_of(library)
    assert tmp_path / command[1] == LIBRARIES[library](tmp_path)
    named = dict(zip(command[2::2], command[3::2], strict=True))
    write_train(
        tmp_path / named["--train"], named.get("--user-column", "user_id"), named.get("--item-column", "item_id")
    )
    done = caged(*command, "-k", "3", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    seen = sum((user, item) in PAIRS for user, item, *_ in ROWS)
    assert found["counts"]["rows_used"] == len(ROWS)
    assert found["counts"].get("seen_rows", 0) == seen
    assert found["metrics"]["arp@3"] == pytest.approx(_mean_popularity())
    assert done.err.count("error") == 0


def _mean_popularity() -> float:
    degree = np.bincount([item for _, item in PAIRS], minlength=10)
    return float(np.mean([degree[item] for _, item, *_ in ROWS]))  # lists are of one length
