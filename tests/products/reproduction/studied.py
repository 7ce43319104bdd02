"""A small plan on the data of the paper, and made-up records of its runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caged.files import make_parent, write_json
from caged.products.study import Plan, PlannedRun, Recorded, read_plan, recorded
from caged.products.study.records import specification
from caged.runs.recorded_users import users_file

PLAN = """
title = "Small study"
results = "results"

[datasets.epinions]
data = "epinions-caged"
presets = ["epinions"]

[datasets.pinterest]
data = "pinterest-caged"
presets = ["pinterest"]

[protocols.paper]
set = ["train.patience=50"]

[rows.lightgcn]
title = "LightGCN"
method = "lightgcn"

[rows.caged]
title = "CAGED"
method = "caged"
variant = "code"

[rows.ips]
title = "IPS"
method = "ips"
set = ["method.eta=0.25"]

[rows.caged-no-momentum]
title = "CAGED without momentum"
method = "caged"
variant = "no_momentum"
set = ["method.without=momentum"]

[rows.caged-lam]
title = "CAGED, lambda"
method = "caged"
variant = "lam"
vary = { key = "method.lam", values = [0, 1.4] }

[sections.main]
about = "The main table."

[[sections.main.grids]]
datasets = ["epinions"]
protocols = ["paper"]
rows = ["lightgcn", "caged", "ips"]

[[sections.main.grids]]
datasets = ["epinions"]
protocols = ["honest"]
rows = ["lightgcn", "caged", "ips"]
seeds = [1, 2, 3]

[[sections.main.grids]]
datasets = ["pinterest"]
protocols = ["paper"]
rows = ["lightgcn", "caged"]

[sections.ablations]

[[sections.ablations.grids]]
datasets = ["epinions"]
protocols = ["honest"]
rows = ["caged", "caged-no-momentum"]

[sections.lambda]

[[sections.lambda.grids]]
datasets = ["epinions"]
protocols = ["honest"]
rows = ["caged", "caged-lam"]

[sections.later]

[[sections.later.grids]]
datasets = ["epinions"]
protocols = ["honest"]
rows = ["lightgcn", "caged"]
seeds = [4, 5]
"""
GROUPS = ("", "/niche", "/popular")


def small_plan(folder: Path, text: str = PLAN) -> Plan:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def with_section(name: str, rows: Mapping[str, str], others: Sequence[str] = ("caged",), data: str = "epinions") -> str:
    """The plan with a section more: these rows, as TOML, beside others that the plan has."""
    tables = "".join(f"\n[rows.{row}]\n{values}\n" for row, values in rows.items())
    listed = ", ".join(f'"{row}"' for row in [*others, *rows])
    grid = f'datasets = ["{data}"]\nprotocols = ["honest"]\nrows = [{listed}]'
    return f"{PLAN}{tables}\n[sections.{name}]\n\n[[sections.{name}.grids]]\n{grid}\n"


def runs_of(plan: Plan, row: str, *, protocol: str = "honest", data: str = "epinions-caged") -> list[PlannedRun]:
    return [run for run in plan.runs if (run.row, run.protocol, run.data) == (row, protocol, data)]


def write_record(
    plan: Plan,
    run: PlannedRun,
    recall: float | None,
    *,
    users: Sequence[float] | None = None,
    ids: str = "same",
    **changes: Any,
) -> Path:
    """`recall` is the value of all metrics, less a tenth in NDCG; `users` are the values of each user."""
    path = plan.results / run.place
    make_parent(path)
    metrics = None if recall is None else _metrics(recall)
    content = {
        "status": "finished",
        "spec": replace(specification(run), source=run.data, seed=run.seed).to_json(),
        "hardware": {"device": "cuda", "gpu": "NVIDIA H200"},
        "dataset": {"fingerprints": {}, "split_fingerprint": "split"},
        "seconds": {"total": 90.0},
        "metrics": metrics,
        **changes,
    }
    if users is not None:
        content["per_user"] = _write_users(path, dict.fromkeys(metrics or {}, users), ids)
    write_json(path, content)
    return path


def _metrics(recall: float) -> dict[str, float]:
    of_ndcg = {f"{name}@20{group}": 0.9 * recall for name in ("ndcg", "ndcg_hits100") for group in GROUPS}
    return {**{f"recall@20{group}": recall for group in GROUPS}, **of_ndcg}


def _write_users(record: Path, values: Mapping[str, Sequence[float]], ids: str) -> dict[str, Any]:
    path = users_file(record)
    pq.write_table(pa.table({key: np.asarray(column, np.float32) for key, column in values.items()}), path)
    return {"users": 1, "ids": ids, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def records_of(plan: Plan) -> dict[PlannedRun, Recorded]:
    return recorded(plan.runs, plan.results)
