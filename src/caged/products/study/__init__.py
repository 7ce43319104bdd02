"""Studies: a plan of many runs, what is recorded of it, and what is still to be run.

plan      the runs, and which of them are meant
reading   a plan from its TOML file
records   which record belongs to which run
estimate  what a run will take, from recorded ones
schedule  what is to be run here
commands  a run as a command
market    the simulated data of a plan
runner    processes side by side, within a budget
failures  why a process failed, and the record of it
study     all of it together
view      words and tables about it
"""

from caged.products.study.plan import Plan, PlannedRun, chosen
from caged.products.study.reading import read_plan
from caged.products.study.records import Recorded, at_hand, recorded, specification
from caged.products.study.runner import Outcome
from caged.products.study.schedule import Wishes
from caged.products.study.study import Study, make_study, run_study
from caged.products.study.view import (
    outcome_json,
    outcome_sentences,
    schedule_json,
    schedule_sentences,
    schedule_tables,
    status_tables,
)

__all__ = [
    "Outcome",
    "Plan",
    "PlannedRun",
    "Recorded",
    "Study",
    "Wishes",
    "at_hand",
    "chosen",
    "make_study",
    "outcome_json",
    "outcome_sentences",
    "read_plan",
    "recorded",
    "run_study",
    "schedule_json",
    "schedule_sentences",
    "schedule_tables",
    "specification",
    "status_tables",
]
