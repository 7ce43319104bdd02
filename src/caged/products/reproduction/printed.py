"""The values that the CAGED paper prints, as data: its main table, its ablations, and the layers of its estimator.

`printed.json` keeps changes as they are printed, with their stars, also where they do not follow from the values.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from caged.products.study import PlannedRun

DATASETS = {"ml-1m-caged": "MovieLens", "pinterest-caged": "Pinterest", "epinions-caged": "Epinions"}
BASE = "caged"  # the row of a plan that the paper calls CAGED
METHODS = {  # rows of the main table: their names in a plan, and in the paper
    "lightgcn": "LightGCN",
    "advdrop": "AdvDrop",
    "galore": "GALORE",
    "apda": "APDA",
    "adjnorm": "AdjNorm",
    "reg": "Reg",
    "ips": "IPS",
    "macr": "MACR",
    BASE: "CAGED",
}
_ABLATIONS = {"two_stage": "w/o-TS", "update_condition": "w/o-UC", "momentum": "w/o-MU"}


class Printed(NamedTuple):
    value: float
    change: str | None  # as printed; None for the row that the others are compared with


def printed_value(section: str, run: PlannedRun, group: str, metric: str) -> Printed | None:
    """What the paper has in the place of this run, for `all`, `niche` or `popular` items; None where it has nothing."""
    dataset = DATASETS.get(run.data)
    place = _place(section, run, group)
    if dataset is None or place is None:
        return None
    values: Any = _values()[place[0]][dataset]
    for name in place[1:]:
        values = values.get(name, {})
    return Printed(*values[metric]) if metric in values else None


def _place(section: str, run: PlannedRun, group: str) -> tuple[str, ...] | None:
    """Where it stands in the file, less the dataset."""
    if section == "main":
        return ("main", METHODS[run.row], group) if run.row in METHODS else None
    if group != "all":
        return None
    if section == "ablations":
        left_out = [text.partition("=")[2] for text in run.settings if text.startswith("method.without=")]
        name = _ABLATIONS.get(left_out[-1]) if left_out else "CAGED" if run.row == BASE else None
        return ("ablation", name) if name else None
    if section == "layers":
        layers = run.value or ("3" if run.row == BASE else None)
        return ("layers", f"{layers}-Layer{'s' * (layers != '1')}") if layers else None
    return None


@cache
def _values() -> dict[str, Any]:
    file = resources.files("caged.products.reproduction") / "printed.json"
    values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return values
