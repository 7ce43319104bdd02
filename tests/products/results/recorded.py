"""Made-up recorded results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from caged.files import make_parent, write_json

NOISE = (0.0, 0.001, -0.001, 0.002, -0.002)


def record(root: Path, dataset: str, method: str, seed: int = 1, **changes: Any) -> Path:
    """`changes`: protocol, status, metrics, fingerprints."""
    protocol = changes.get("protocol", "honest")
    file = root / dataset / protocol / method / f"seed{seed}.json"
    make_parent(file)
    prints = {part: f"{dataset}-{part}" for part in ("train", "valid", "test")}
    config = {"data": {}, "method": {"layers": 3}, "train": {"epochs": 2}, "eval": {"k": [20]}}
    content = {
        "status": changes.get("status", "finished"),
        "spec": {"method": method.partition("-")[0], "protocol": protocol, "seed": seed, "config": config},
        "dataset": {"name": dataset, "fingerprints": changes.get("fingerprints", prints)},
        "protocol": protocol,
        "metrics": changes.get("metrics", {"recall@20": 0.1}),
        "users": {},
    }
    write_json(file, content)
    return file


def several(root: Path, values: Mapping[tuple[str, str], float], seeds: Sequence[int] = (1, 2, 3, 4, 5)) -> Path:
    """Seeds of (dataset, method) whose recall scatters around a value; gini and a negative gap go with it."""
    for (dataset, method), value in values.items():
        for seed in seeds:
            recall = value + NOISE[seed - 1]
            metrics = {"recall@20": recall, "gini@20": 1 - recall, "delta_gap@20": -recall, "arp@20": 1000 * recall}
            record(root, dataset, method, seed, metrics=metrics)
    return root
