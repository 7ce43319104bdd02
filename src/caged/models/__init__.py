"""Methods: one file each, behind one contract and one registry."""

from caged.models.contract import (
    DotScorer,
    EpochContext,
    Losses,
    Method,
    ParamGroup,
    Scorer,
    Stage,
    State,
)
from caged.models.encoder import EncoderMethod
from caged.models.registry import METHODS, Entry, entry, register

__all__ = [
    "METHODS",
    "DotScorer",
    "EncoderMethod",
    "Entry",
    "EpochContext",
    "Losses",
    "Method",
    "ParamGroup",
    "Scorer",
    "Stage",
    "State",
    "entry",
    "register",
]
