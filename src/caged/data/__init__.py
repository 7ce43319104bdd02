"""Interactions, their identifiers, readers and splits."""

from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.readers import Columns, read_frame, read_log, validate_log
from caged.data.source import Source, load
from caged.data.splits import (
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
    training_catalogue,
    validate_on,
)

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
    "training_catalogue",
    "validate_log",
    "validate_on",
]
