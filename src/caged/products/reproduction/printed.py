"""The values that the CAGED paper prints, as data: its main table, its ablations, and the layers of its estimator.

`printed.json` keeps changes as they are printed, with their stars, also where they do not follow from the values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from caged.products.reproduction.titles import varied_key
from caged.products.study import PlannedRun, specification

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
_STUDIES = {"ablations": "method.without", "layers": "method.estimator_layers"}  # sections, and what they try
_WHOLE = {"method.without": "none", "method.likelihood": "estimated"}  # neither an ablation nor a control
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


def tries_what_is_printed(section: str, runs: Iterable[PlannedRun]) -> bool:
    """Whether a section is what the paper calls so: a section `layers` of one's own may be about something else."""
    return section == "main" or any(run.row != BASE and _place(section, run, "all") is not None for run in runs)


def _place(section: str, run: PlannedRun, group: str) -> tuple[str, ...] | None:
    """Where it stands in the file, less the dataset."""
    if run.kind != "train":
        return None
    if section == "main":
        is_paper_s = run.row in METHODS and run.method == run.row and (run.row != BASE or _is_caged(run))
        return ("main", METHODS[run.row], group) if is_paper_s else None
    setting = _STUDIES.get(section)
    if setting is None or group != "all" or not _tries(run, setting) or not _is_caged(run, apart_from=setting):
        return None
    value = _value(run, setting)
    if section == "ablations":
        return ("ablation", "CAGED" if value == "none" else _ABLATIONS[value])
    return ("layers", f"{value}-Layer{'s' * (value != 1)}")


def _tries(run: PlannedRun, setting: str) -> bool:
    """Whether the row is CAGED as it is, or CAGED with a value of this setting; not one that varies something else."""
    if run.method != BASE or varied_key(run) not in (None, setting):
        return False
    return run.row == BASE or any(text.startswith(f"{setting}=") for text in run.settings)


def _is_caged(run: PlannedRun, apart_from: str = "") -> bool:
    """Whether it is the method as a whole, apart from the setting that a study tries."""
    return all(_value(run, setting) == value for setting, value in _WHOLE.items() if setting != apart_from)


def _value(run: PlannedRun, setting: str) -> Any:
    section, _, option = setting.partition(".")
    return specification(run).to_json()["config"][section][option]


@cache
def _values() -> dict[str, Any]:
    file = resources.files("caged.products.reproduction") / "printed.json"
    values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return values
