from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from caged.data import load
from caged.errors import RunError
from caged.products.study.market import make_market

SMALL = (("item_count", 60), ("rounds", 8), ("seed", 3), ("test_rounds", 3), ("user_count", 50))


def test_both_forms_hold_the_same_pairs(tmp_path):
    folder, text = tmp_path / "shop", tmp_path / "text" / "shop"
    make_market(SMALL, folder, text)
    as_text = load(str(text), catalogue="max_id")
    assert as_text.name == load(str(folder)).name == "shop"
    for part in ("train", "test"):
        rows = pq.read_table(folder / f"{part}.parquet", columns=["user_id", "item_id"]).to_pylist()
        pairs = {(int(row["user_id"][1:]) - 1, int(row["item_id"][1:]) - 1) for row in rows}  # they count from 1
        found = as_text.parts[part]
        ids = found.user_ids.values.to_pylist(), found.item_ids.values.to_pylist()
        assert {(ids[0][user], ids[1][item]) for user, item in zip(found.users, found.items, strict=True)} == pairs


def test_what_stands_there_is_kept_and_another_market_refused(tmp_path):
    folder, text = tmp_path / "shop", tmp_path / "text" / "shop"
    make_market(SMALL, folder, text)
    before = (folder / "train.parquet").stat().st_mtime_ns
    make_market(SMALL, folder, text)
    assert (folder / "train.parquet").stat().st_mtime_ns == before
    with pytest.raises(RunError, match="other parameters"):
        make_market((*SMALL[:2], ("seed", 4), *SMALL[3:]), folder, text)
