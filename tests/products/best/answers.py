"""An answer that is made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from caged.products.best.answer import Answer
from caged.products.best.choice import Candidate, Choice
from caged.products.best.judgement import Judged, Value
from caged.products.best.wish import Wish

RECALL, NICHE = "recall@20", "recall@20/niche"
FACTS: Any = {
    "name": "orders",
    "users": 900,
    "items": 1500,
    "notes": [],
    "interactions": {"train": 70_000, "valid": 10_000, "test": 20_000},
    "split": {"kind": "random", "parameters": {}, "notes": {}},
    "split_fingerprint": "f" * 64,
}


SERVED = {RECALL: 0.34, NICHE: 0.07}


def judged(role: str, name: str, recall: float, niche: float) -> Judged:
    """Intervals of two points, of differences of four."""
    values = {}
    for key, value in {RECALL: recall, NICHE: niche}.items():
        values[key] = Value(value, (value - 0.01, value + 0.01) if value else None)
        if role != "chosen":
            gain = SERVED[key] - value
            values[key] = replace(values[key], difference=gain, difference_interval=(gain - 0.02, gain + 0.02))
    return Judged(role, name, values)


def made(folder: Path) -> Answer:
    values = {"train.learning_rate": 0.005}
    candidates = (
        Candidate("softmax", 1, values, 0.1, {RECALL: 0.33, NICHE: 0.06}, 40, within=True),
        Candidate("softmax", 1, values, None, {RECALL: 0.333, NICHE: 0.05}, 40, within=True),
        Candidate("lightgcn", 0, {}, None, {RECALL: 0.31, NICHE: 0.03}, 90),
        Candidate("mostpop", 0, {}, None, {RECALL: 0.16, NICHE: 0.0}, 0),
    )
    return Answer(
        folder=folder,
        wish=Wish("orders.csv", minutes=10),
        command="caged best orders.csv --minutes 10",
        dataset=FACTS,
        example_user="ann",
        epochs=300,
        choice=Choice(RECALL, NICHE, 0.3267, candidates[0], candidates, 4),
        rows=(
            judged("chosen", "Softmax adjusted", SERVED[RECALL], SERVED[NICHE]),
            judged("lightgcn", "LightGCN at its defaults", 0.32, 0.03),
            judged("mostpop", "Most popular", 0.17, 0.0),
        ),
        users=900,
        settings_tried={"mostpop": 1, "lightgcn": 4, "softmax": 4},
        seconds={"mostpop": 0.1, "lightgcn": 100.0, "softmax": 200.0},
        total_seconds=420.0,
        notes=("a note",),
    )
