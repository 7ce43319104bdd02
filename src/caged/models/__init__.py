"""Methods: one file each, behind one contract and one registry.

The registry is there at once; the contract, and torch with it, when one of its names is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from caged.models.registry import METHODS, Registered, display_name, register, registered

if TYPE_CHECKING:
    from caged.models.contract import (
        DotScorer,
        EpochContext,
        Explainable,
        FoldsIn,
        LearnsWeights,
        Losses,
        MayBeNeutral,
        MayRankByCosine,
        Method,
        ParamGroup,
        RelatesItems,
        Scorer,
        Stage,
        StartsFromTables,
        State,
        WeighsItems,
    )
    from caged.models.encoder import EncoderMethod

__all__ = [
    "METHODS",
    "DotScorer",
    "EncoderMethod",
    "EpochContext",
    "Explainable",
    "FoldsIn",
    "LearnsWeights",
    "Losses",
    "MayBeNeutral",
    "MayRankByCosine",
    "Method",
    "ParamGroup",
    "Registered",
    "RelatesItems",
    "Scorer",
    "Stage",
    "StartsFromTables",
    "State",
    "WeighsItems",
    "display_name",
    "register",
    "registered",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'caged.models' has no attribute '{name}'")
    home = "encoder" if name == "EncoderMethod" else "contract"
    return getattr(importlib.import_module(f"caged.models.{home}"), name)
