"""Splits of a log into train, validation and test: their kinds, and a split as a folder.

catalogue the catalogue without what only test parts name
kinds     every way to split, and what a split is
making    `caged.split`, which takes them by name
draws     the random draw behind a popularity-balanced test part
marked    validation from the interactions that a log marks
folder    a split as files that `--data` takes
"""

from caged.data.splits.catalogue import TrainingCatalogue, training_catalogue
from caged.data.splits.folder import check_kept, write_split
from caged.data.splits.kinds import (
    KINDS,
    Development,
    Split,
    carve_validation,
    given_split,
    intervened_split,
    leave_last_out,
    split_by_time,
    split_log,
)
from caged.data.splits.making import split
from caged.data.splits.marked import parse_mark, validate_on

__all__ = [
    "KINDS",
    "Development",
    "Split",
    "TrainingCatalogue",
    "carve_validation",
    "check_kept",
    "given_split",
    "intervened_split",
    "leave_last_out",
    "parse_mark",
    "split",
    "split_by_time",
    "split_log",
    "training_catalogue",
    "validate_on",
    "write_split",
]
