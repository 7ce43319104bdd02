"""Folders of runs and audits for comparisons, written without training anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caged.files import write_json

USERS = 40
FINGERPRINTS = {"train": "a" * 64, "valid": "b" * 64, "test": "c" * 64}
CATALOGUE = ("gini@20", "coverage@20")


def values(seed: int, shift: float = 0.0, users: int = USERS) -> dict[str, np.ndarray]:
    """Per-user values of a few metrics; equal seeds give values that differ by `shift` and some noise only."""
    rng, noise = np.random.default_rng(seed), np.random.default_rng([seed, abs(round(1000 * shift))])
    recall = rng.random(users)
    return {
        "recall@20": recall + shift + 0.01 * noise.standard_normal(users),
        "ndcg@20": recall / 2 + 0.01 * noise.standard_normal(users),
        "recall@20/niche": np.where(np.arange(users) % 4 == 0, np.nan, recall / 3 + shift),
        "arp@20": 100 + 50 * rng.random(users),
    }


def write_run(
    folder: Path,
    method: str = "lightgcn",
    *,
    per_user: Mapping[str, np.ndarray] | None = None,
    user_ids: Sequence[Any] | None = None,
    seed: int = 1,
    catalogue: Mapping[str, float] | None = None,
    **changes: Any,
) -> Path:
    """`changes`: protocol, status, fingerprints, config (of the method), record, stored=False: no values per user."""
    per_user = values(7) if per_user is None else per_user
    folder.mkdir(parents=True)
    config = {
        "data": {"split": "random", "split_seed": 1},
        "method": changes.get("config", {"layers": 3}),
        "train": {"epochs": 2, "capture": True},
        "eval": {"k": [20]},
    }
    protocol = changes.get("protocol", "honest")
    run = {
        "format": 1,
        "status": changes.get("status", "finished"),
        "spec": {"method": method, "protocol": protocol, "seed": seed, "config": config},
        "dataset": {"name": "log", "fingerprints": changes.get("fingerprints", FINGERPRINTS)},
        "hardware": {},
        "threads": 1,
        "resumed": 0,
        "seconds": {},
        "data_path": None,
        "record": changes.get("record"),
    }
    write_json(folder / "run.json", run)
    _write_results(folder, per_user, user_ids, catalogue, {"protocol": protocol}, stored=changes.get("stored", True))
    return folder


def write_audit_folder(
    folder: Path,
    name: str = "ours",
    *,
    per_user: Mapping[str, np.ndarray] | None = None,
    user_ids: Sequence[Any] | None = None,
    fingerprints: Mapping[str, str] = FINGERPRINTS,
) -> Path:
    folder.mkdir(parents=True)
    head = {"protocol": None, "name": name, "fingerprints": dict(fingerprints)}
    _write_results(folder, values(7) if per_user is None else per_user, user_ids, None, head, stored=True)
    return folder


def _write_results(
    folder: Path,
    per_user: Mapping[str, np.ndarray],
    user_ids: Sequence[Any] | None,
    catalogue: Mapping[str, float] | None,
    head: dict[str, Any],
    *,
    stored: bool,
) -> None:
    means = {key: float(np.nanmean(column)) if not np.isnan(column).all() else None for key, column in per_user.items()}
    defined = {key: int(np.count_nonzero(~np.isnan(column))) for key, column in per_user.items()}
    extra = dict.fromkeys(CATALOGUE, 0.5) if catalogue is None else dict(catalogue)
    write_json(folder / "metrics.json", {**head, "metrics": {**means, **extra}, "users": defined, "counts": {}})
    if stored:
        count = len(next(iter(per_user.values())))
        ids = list(range(count)) if user_ids is None else list(user_ids)
        pq.write_table(pa.table({"user_id": ids, **per_user}), folder / "per_user.parquet")
