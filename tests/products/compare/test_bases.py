"""Folders that were measured with another catalogue, other groups or another treatment of missing lists."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from caged.errors import ConfigError
from caged.files import read_json, write_json
from caged.products.audit import audit
from caged.products.compare import compare

USERS = range(30)
TRAIN = pd.DataFrame([(u, (u * i) % 17) for u in USERS for i in range(1, 6)], columns=["user_id", "item_id"])
TEST = pd.DataFrame([(u, 17 + u % 5) for u in USERS] + [(u, u % 5 + 6) for u in USERS], columns=["user_id", "item_id"])
TEST = TEST[~TEST.apply(tuple, axis=1).isin(set(TRAIN.apply(tuple, axis=1)))]
LISTS = pd.DataFrame(
    [(u, (u + p) % 22, p + 1) for u in USERS for p in range(3)], columns=["user_id", "item_id", "rank"]
)


def saved(folder: Path, recs: pd.DataFrame = LISTS, **options: object) -> Path:
    return audit(recs, TRAIN, TEST, k=3, name=folder.name, **options).save(folder)  # type: ignore[arg-type]


def test_another_catalogue_leaves_out_what_counts_it(tmp_path: Path) -> None:
    plain = saved(tmp_path / "plain")
    wide = saved(tmp_path / "wide", items=pd.DataFrame({"item_id": range(70)}))
    found = compare([plain, wide])
    assert "recall@3" in found.metrics
    assert not {"gini@3", "coverage@3"} & set(found.metrics)
    assert any("the catalogues differ (22 items and 70)" in warning for warning in found.warnings)
    with pytest.raises(ConfigError, match=r"coverage@3 cannot be compared: .*the catalogues differ"):
        compare([plain, wide], metrics=["recall@3", "coverage@3"])


def test_users_that_one_side_leaves_out(tmp_path: Path) -> None:
    plain = saved(tmp_path / "plain")
    fewer = saved(tmp_path / "fewer", LISTS[LISTS["user_id"] > 9], missing="skip")
    found = compare([plain, fewer])
    assert "recall@3" not in found.metrics
    assert found.trade_off is None
    assert any("left out, 0 and 10 of them" in warning for warning in found.warnings)
    with pytest.raises(ConfigError, match="recall@3 cannot be compared"):
        compare([plain, fewer], metrics=["recall@3"])


def test_items_that_only_lists_name_are_no_other_catalogue(tmp_path: Path) -> None:
    plain = saved(tmp_path / "plain")
    more = saved(tmp_path / "more", pd.concat([LISTS, pd.DataFrame([(0, 99, 4)], columns=LISTS.columns)]))
    assert compare([plain, more], metrics=["coverage@3"]).warnings == ()


def test_folders_that_do_not_say_it_are_compared_with_a_note(tmp_path: Path) -> None:
    plain, old = saved(tmp_path / "plain"), saved(tmp_path / "old", items=pd.DataFrame({"item_id": range(70)}))
    stored = read_json(old / "metrics.json")
    del stored["basis"], stored["checksum"]
    write_json(old / "metrics.json", stored)
    found = compare([plain, old])
    assert "coverage@3" in found.metrics
    assert any("old does not say which catalogue" in note for note in found.notes)
