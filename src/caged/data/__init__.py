"""Interactions, their identifiers, readers and splits."""

from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.readers.columns import Columns
from caged.data.readers.files import read_frame, read_log, validate_log
from caged.data.source import Source, load
from caged.data.splits.kinds import (
    KINDS,
    Development,
    Split,
    carve_validation,
    given_split,
    intervened_split,
    leave_last_out,
    split,
    split_by_time,
    split_log,
)
from caged.data.splits.marked import validate_on

__all__ = [
    "KINDS",
    "Columns",
    "Development",
    "IdMap",
    "Interactions",
    "Source",
    "Split",
    "carve_validation",
    "given_split",
    "intervened_split",
    "leave_last_out",
    "load",
    "read_frame",
    "read_log",
    "split",
    "split_by_time",
    "split_log",
    "validate_log",
    "validate_on",
]
