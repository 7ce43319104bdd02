"""Studies: a plan of many runs, what is recorded of it, and what is still to be run.

plan      the runs, and which of them are meant
reading   a plan from its TOML file
records   which record belongs to which run
"""

from caged.products.study.plan import Plan, PlannedRun, chosen
from caged.products.study.reading import read_plan
from caged.products.study.records import Recorded, recorded

__all__ = [
    "Plan",
    "PlannedRun",
    "Recorded",
    "chosen",
    "read_plan",
    "recorded",
]
