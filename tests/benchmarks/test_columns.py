"""Of the benchmark of ranks: one rank goes through all of it, and its table can be read."""

from __future__ import annotations

from benchmarks.columns import specification, text, trained
from caged.columns import WHOLE


def test_one_rank_sends_nothing_and_holds_four_tables(log_csv):
    small = ("method.embedding_size=4", "train.batch_size=128")
    spec = specification(str(log_csv), "lightgcn", 2, "cpu", small)
    found, tables = trained(spec, WHOLE)
    assert found["sent"] == found["sent_by_the_model"] == 0
    assert found["held"] == 4 * sum(table.nbytes for table in tables.values())
    assert 0 < found["metrics"]["recall@20"] < 1
    row = {"method": "lightgcn", "ranks": 1, **found, "tables_differ": 0.0, "metrics_differ": 0.0}
    assert "lightgcn" in text([row])[-1]
