"""The comparison with pandas knows every metric of an audit, and the values agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.audit import ORDERS, TOLERANCE, K, generate, largest_difference
from caged.products.audit import audit_lists


@pytest.mark.parametrize("order", ORDERS)
def test_pandas_computes_the_same_values(tmp_path: Path, order: str) -> None:
    pytest.importorskip("pandas")
    from benchmarks.audit_pandas import PandasAudit

    generate(tmp_path, users=300, items=400, order=order, ids="integers")
    files = {name: tmp_path / f"{name}.parquet" for name in ("recs", "train", "test")}
    ours = audit_lists(files["recs"], train=files["train"], test=files["test"], ks=(K,)).metrics
    theirs = PandasAudit(files["recs"], files["train"], files["test"], K).run()
    assert ours[f"serendipity@{K}"] > 0
    assert largest_difference(ours, theirs) <= TOLERANCE


def test_a_metric_that_one_side_lacks_ends_the_comparison() -> None:
    with pytest.raises(SystemExit, match="ndcg@20"):
        largest_difference({"recall@20": 0.5, "ndcg@20": 0.5}, {"recall@20": 0.5})
    with pytest.raises(SystemExit, match=r"differ by 0\.25"):
        largest_difference({"recall@20": 0.5}, {"recall@20": 0.25})
