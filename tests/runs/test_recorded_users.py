"""Values per user beside a record: what a run measured, nobody's name, and a checksum."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from caged.errors import RunError
from caged.runs.recorded_users import read_recorded_users, users_file
from tests.cli.invoke import train


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run under `paper`; its folder lies beside the records."""
    root = tmp_path_factory.mktemp("recorded")
    data = root / "data"
    data.mkdir()
    rng = np.random.default_rng(0)
    taken = [rng.permutation(np.unique(rng.geometric(0.05, 20))) for _ in range(50)]  # the first three are for the test
    for part, chosen in (("train", slice(3, None)), ("test", slice(3))):
        lines = [" ".join(map(str, [user, *items[chosen]])) for user, items in enumerate(taken)]
        (data / f"{part}.txt").write_text("\n".join(lines) + "\n")
    train(data, root / "run", "--protocol", "paper", "--record", root / "results", method="itemknn")
    (found,) = (root / "results").rglob("seed1.json")
    return found


def test_the_file_holds_what_the_run_measured(record: Path) -> None:
    stored = json.loads(record.read_text())
    values = read_recorded_users(record, stored["per_user"])
    groups = ("", "/popular", "/niche")
    assert list(values) == [f"{name}@20{group}" for name in ("recall", "ndcg_hits100") for group in groups]
    measured = pq.read_table(record.parents[4] / "run" / "per_user.parquet")
    assert stored["per_user"]["users"] == measured.num_rows
    for name, column in values.items():
        np.testing.assert_allclose(column, measured[name].to_numpy(), atol=1e-7 if "recall" in name else 5.01e-4)
        assert np.nanmean(column) == pytest.approx(stored["metrics"][name], abs=5e-4)
    assert any(np.isnan(column).any() for column in values.values())  # somebody has no niche item in the test part


def test_nobody_is_named(record: Path) -> None:
    assert "user_id" not in pq.read_schema(users_file(record)).names


def test_another_file_is_refused(record: Path, tmp_path: Path) -> None:
    about = json.loads(record.read_text())["per_user"]
    copy = tmp_path / record.name
    with pytest.raises(RunError, match="cannot read"):
        read_recorded_users(copy, about)
    content = bytearray(users_file(record).read_bytes())
    content[len(content) // 2] ^= 1
    users_file(copy).write_bytes(content)
    with pytest.raises(RunError, match="is not the file that"):
        read_recorded_users(copy, about)
