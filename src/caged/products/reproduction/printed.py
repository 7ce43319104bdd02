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
_STUDIES = {"ablations": "without", "layers": "estimator_layers"}  # sections, and the option of CAGED that they try
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
    option = _STUDIES.get(section)
    if option is None or group != "all" or not _tries(run, option) or not _is_caged(run, apart_from=option):
        return None
    value = _options(run)[option]
    if option == "without":
        name = "CAGED" if value == "none" else _ABLATIONS[value]
        return ("ablation", name)
    return ("layers", f"{value}-Layer{'s' * (value != 1)}")


def _tries(run: PlannedRun, option: str) -> bool:
    """Whether the row is CAGED as it is, or CAGED with a value of this option; not one that varies something else."""
    if run.method != BASE or varied_key(run) not in (None, f"method.{option}"):
        return False
    return run.row == BASE or any(text.startswith(f"method.{option}=") for text in run.settings)


def _is_caged(run: PlannedRun, apart_from: str = "") -> bool:
    """Neither an ablation nor a control, apart from the option that a study tries."""
    whole = {"without": "none", "likelihood": "estimated"}
    return all(_options(run)[option] == value for option, value in whole.items() if option != apart_from)


def _options(run: PlannedRun) -> dict[str, Any]:
    options: dict[str, Any] = specification(run).to_json()["config"]["method"]
    return options


@cache
def _values() -> dict[str, Any]:
    file = resources.files("caged.products.reproduction") / "printed.json"
    values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return values
