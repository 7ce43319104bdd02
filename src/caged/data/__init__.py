"""Interactions, their identifiers, readers and splits."""

from caged.data.columns import Columns
from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.readers import read_frame, read_log, validate_log
from caged.data.source import Source, load
from caged.data.split import Development, Split, carve_validation, given_split, split

__all__ = [
    "Columns",
    "Development",
    "IdMap",
    "Interactions",
    "Source",
    "Split",
    "carve_validation",
    "given_split",
    "load",
    "read_frame",
    "read_log",
    "split",
    "validate_log",
]
