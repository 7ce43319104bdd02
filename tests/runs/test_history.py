"""The learning curve that a record keeps of `history.jsonl`."""

from __future__ import annotations

import json
from pathlib import Path

from caged.runs.history import learning_curve
from tests.cli.invoke import train


def test_a_curve_per_stage_of_the_epochs_that_were_validated(tmp_path: Path) -> None:
    lines = [
        {"stage": "pretrain", "epoch": 1, "validation": {"recall@20": 0.1234567, "ndcg@20": 0.9}},
        {"stage": "pretrain", "epoch": 2, "validation": None},
        {"stage": "pretrain", "epoch": 3, "validation": {"recall@20": 0.2}},
        {"stage": "finetune", "epoch": 1, "validation": {"recall@20": 0.3}},
    ]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert learning_curve(path, "recall@20") == [
        {"stage": "pretrain", "epochs": [1, 3], "values": [0.12346, 0.2]},
        {"stage": "finetune", "epochs": [1], "values": [0.3]},
    ]
    assert learning_curve(tmp_path / "none.jsonl", "recall@20") == []


def test_a_record_holds_the_curve(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", "--record", tmp_path / "results")
    (record,) = (tmp_path / "results").rglob("seed1.json")
    stored = json.loads(record.read_text())
    (curve,) = stored["history"]
    assert curve["epochs"] == [1, 2]
    assert max(curve["values"]) == round(stored["training"]["best_validation"], 5)
    assert '"epochs": [1, 2],\n' in record.read_text()
