"""The tables of `docs/remedies.md` are those of the records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import remedies_doc
from tools.remedies_doc import updated

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "remedies.md"
MARKED = "before\n<!-- prices: shop honest lightgcn=start; other=a step; none=never run -->\nold\n<!-- end -->\nafter\n"


def record(root: Path, name: str, seed: int, recall: float, status: str = "finished") -> None:
    folder = root / "shop" / "honest" / name
    folder.mkdir(parents=True, exist_ok=True)
    metrics = {"recall@20": recall, "recall@20/niche": recall / 4, "ndcg@20": recall / 2}
    (folder / f"seed{seed}.json").write_text(
        json.dumps({"status": status, "spec": {"seed": seed}, "metrics": metrics if status == "finished" else None})
    )


def test_the_document_is_up_to_date() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    if not (ROOT / "results").is_dir():
        pytest.skip("the recorded results are not part of this copy")
    assert updated(text, ROOT / "results") == text, "run: python -m tools.remedies_doc docs/remedies.md"


def test_a_change_is_against_the_same_seeds(tmp_path: Path) -> None:
    for seed, recall in ((1, 0.1), (2, 0.3)):
        record(tmp_path, "lightgcn", seed, recall)
    record(tmp_path, "other", 1, 0.2)
    record(tmp_path, "other", 2, 0.9, status="failed")
    text = updated(MARKED, tmp_path)
    assert "| start | 2 | 0.2000 | 0.0500 | 0.1000 |" in text
    assert "| a step | 1 | 0.2000 (+100%) | 0.0500 (+100%) | 0.1000 (+100%) |" in text
    assert "| never run | 0 | not run | not run | not run |" in text


def test_what_chance_showed_has_columns_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "shop" / "honest" / "ips"
    folder.mkdir(parents=True)
    metrics = {"shown_auc": 0.6, "shown_auc/niche": 0.5, "shown_auc/popular": 0.7}
    (folder / "seed1.json").write_text(json.dumps({"status": "finished", "spec": {"seed": 1}, "metrics": metrics}))
    text = updated("<!-- shown: shop honest ips=`ips` -->\n<!-- end -->", tmp_path)
    assert "| `ips` | 1 | 0.6000 | 0.5000 | 0.7000 |" in text


def test_the_half_that_chooses_sets_the_order(tmp_path: Path) -> None:
    halves = [{"first": {"shown_auc": 0.6}, "second": {"shown_auc": 0.7}}]
    halves.append({"first": {"shown_auc": 0.62}, "second": {"shown_auc": 0.61}})
    runs = [
        {"method": "softmax", "settings": {"temperature": 0.4, "gamma": 0.3}, "halves": halves[1]},
        {"method": "ips", "settings": {}, "halves": halves[0]},
    ]
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "halves.json").write_text(json.dumps({"runs": runs}))
    lines = updated("<!-- chance: shop -->\n<!-- end -->", tmp_path).splitlines()
    assert lines[3] == "| `ips` | 0.6000 | 0.7000 |"
    assert lines[4] == "| `softmax`, temperature 0.4, gamma 0.3 | 0.6200 | 0.6100 |"


def test_the_command_writes_the_document(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(MARKED)
    record(tmp_path, "lightgcn", 1, 0.1)
    remedies_doc.main([str(document), "--results", str(tmp_path)])
    assert "| start | 1 | 0.1000 |" in document.read_text()
