"""caged: top-K recommendation that is not captured by popularity.

    import caged
    data = caged.Interactions.read("log.parquet")
    split = caged.split(data, seed=1)
    model = caged.LightGCN(embedding_size=64).fit(split.train, valid=split.valid)
    recs = model.recommend(user_ids, k=20)

Names are loaded on first use, so `import caged` costs nothing and pulls in neither torch nor the command line.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from caged._version import __version__

if TYPE_CHECKING:
    from caged.data import IdMap, Interactions, Split, split
    from caged.data.source import dataset
    from caged.errors import CagedError
    from caged.experiments.estimators import (
        CAGED,
        EASE,
        IPS,
        MACR,
        AdjNorm,
        ItemKNN,
        LightGCN,
        LightGCNBCE,
        MostPopular,
        Recommender,
        Reg,
        load,
    )

_HOME = {
    "AdjNorm": "caged.experiments.estimators",
    "CAGED": "caged.experiments.estimators",
    "CagedError": "caged.errors",
    "EASE": "caged.experiments.estimators",
    "IPS": "caged.experiments.estimators",
    "IdMap": "caged.data",
    "Interactions": "caged.data",
    "ItemKNN": "caged.experiments.estimators",
    "LightGCN": "caged.experiments.estimators",
    "LightGCNBCE": "caged.experiments.estimators",
    "MACR": "caged.experiments.estimators",
    "MostPopular": "caged.experiments.estimators",
    "Recommender": "caged.experiments.estimators",
    "Reg": "caged.experiments.estimators",
    "Split": "caged.data",
    "dataset": "caged.data.source",
    "load": "caged.experiments.estimators",
    "split": "caged.data",
}

__all__ = [
    "CAGED",
    "EASE",
    "IPS",
    "MACR",
    "AdjNorm",
    "CagedError",
    "IdMap",
    "Interactions",
    "ItemKNN",
    "LightGCN",
    "LightGCNBCE",
    "MostPopular",
    "Recommender",
    "Reg",
    "Split",
    "__version__",
    "dataset",
    "load",
    "split",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'caged' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
