"""Answers of small searches: what made-up tests said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from caged.evaluation.stored import write_user_table
from caged.products.tune.answer import Answer
from caged.products.tune.finals import FinalRun
from caged.runs.folder import PER_USER

Answered = Callable[..., Answer]
CALL = {
    "command": "caged tune --data /home/ann/log.csv --methods lightgcn,ips --out t",
    "dataset": "log",
    "started": "2026-01-01T00:00:00+00:00",
    "versions": {"caged": "0.1.0"},
    "hardware": {"device": "cpu", "cpu": "A Processor"},
    "threads": 1,
}


def on_test(**recalls: list[float]) -> dict[str, list[FinalRun]]:
    return {
        method: [
            FinalRun(seed, Path("r"), {"recall@20": value}, epochs=2, seconds=0.25)
            for seed, value in enumerate(values, start=1)
        ]
        for method, values in recalls.items()
    }


def with_users(folder: Path, name: str, seeds: int, shift: float) -> list[FinalRun]:
    """Trainings with values of 60 users, all of them higher by `shift`."""
    runs = []
    for seed in range(1, seeds + 1):
        values = np.random.default_rng(seed).random(60) * 0.5 + shift
        users = folder / f"{name}{seed}"
        users.mkdir()
        table = {"user_id": [f"u{user}" for user in range(60)], "recall@20": values}
        write_user_table(pa.table(table), users / PER_USER)
        runs.append(FinalRun(seed, folder / "none", {"recall@20": float(values.mean())}, users=users))
    return runs
