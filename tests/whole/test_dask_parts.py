"""The Dask query of docs/scale.md: what it writes makes the same graph as the log itself."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caged.data.cgraph.dividing import SplitAs
from caged.data.cgraph.writing import import_graph

pytest.importorskip("dask.dataframe")
pytest.importorskip("polars")

DOCUMENT = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_query_writes_parts_of_the_same_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (query,) = re.findall(r"```python dask\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    generator = np.random.default_rng(3)
    (tmp_path / "visits").mkdir()
    for part in range(3):
        log = {name: generator.integers(0, most, 400) for name, most in (("user_id", 40), ("item_id", 30))}
        times = generator.permutation(400) + 400 * part
        pq.write_table(pa.table({**log, "timestamp": times}), tmp_path / "visits" / f"day-{part}.parquet")
    monkeypatch.chdir(tmp_path)
    exec(query, {})
    split = SplitAs("time")
    prepared = import_graph(["pairs/*.parquet"], "prepared.cgraph", split=split).manifest
    direct = import_graph(["visits/*.parquet"], "direct.cgraph", split=split).manifest
    assert prepared["merged_duplicates"] == 0 < direct["merged_duplicates"]
    assert prepared["fingerprints"] == direct["fingerprints"]
    assert prepared["split"] == direct["split"]
