"""The tables of `docs/tune.md` are those of the records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools import tune_doc
from tools.tune_doc import updated

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "tune.md"
MARKED = "before\n<!-- tuned: shop -->\nold\n<!-- end -->\n<!-- given: shop -->\n<!-- end -->\nafter\n"


def trial(number: int, recall: float) -> dict[str, Any]:
    return {"number": number, "metrics": {"recall@20": recall, "recall@20/niche": recall / 10}}


def final(seed: int, recall: float) -> dict[str, Any]:
    return {"seed": seed, "epochs": 40, "seconds": 2.4, "metrics": trial(0, recall)["metrics"]}


def method(recalls: list[float], chosen: int, tests: list[float], *, feasible: bool = True) -> dict[str, Any]:
    return {
        "trials": len(recalls),
        "exhausted": len(recalls) < 3,
        "failed": 1,
        "epochs": 1234,
        "seconds": 12.6,
        "feasible": feasible,
        "chosen": chosen,
        "record": [trial(number, recall) for number, recall in enumerate(recalls)],
        "test": [final(seed, recall) for seed, recall in enumerate(tests, start=1)],
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    methods = {
        "lightgcn": method([0.1, 0.12, 0.11], 1, [0.1, 0.12]),
        "ease": method([0.3, 0.2], 0, [], feasible=False),
        "softmax": method([0.2, 0.1, 0.15], 0, [0.2]),
    }
    goal = {"objective": "recall@20", "maximise": True}
    (tmp_path / "tunes").mkdir()
    content = {"goal": goal, "subject_to": ["gini@20<=0.9"], "methods": methods}
    (tmp_path / "tunes" / "shop.json").write_text(json.dumps(content))
    return tmp_path


def test_the_document_is_up_to_date() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    if not (ROOT / "results").is_dir():
        pytest.skip("the recorded results are not part of this copy")
    assert updated(text, ROOT / "results") == text, "run: python -m tools.tune_doc docs/tune.md"


def test_what_keeps_the_constraint_comes_first(results: Path) -> None:
    lines = updated(MARKED, results).splitlines()
    assert lines[4] == "| `softmax` | 0.2000, the same | 0.0200, the same | 0.2000 | 0.0200 | yes |"
    tuned = "| `lightgcn` | 0.1000, 0.1200 (+20.0%) | 0.0100, 0.0120 (+20.0%) "
    assert lines[5] == tuned + "| 0.1100 ± 0.0141 | 0.0110 ± 0.0014 | yes |"
    assert lines[6] == "| `ease` | 0.3000, the same | 0.0300, the same | not tested | not tested | no |"


def test_what_each_was_given(results: Path) -> None:
    text = updated(MARKED, results)
    assert "| `lightgcn` | 3 | 1 | 1,234 | 13 | 2 | 80 | 5 |" in text
    assert "| `ease` | 2 (all settings) | 1 | 1,234 | 13 | 0 | 0 | 0 |" in text


def test_the_command_writes_the_document(tmp_path: Path, results: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(MARKED)
    tune_doc.main([str(document), "--results", str(results)])
    assert document.read_text() == updated(MARKED, results)
