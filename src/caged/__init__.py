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
    from caged.experiments.compare import compare
    from caged.experiments.estimators import (
        APDA,
        CAGED,
        EASE,
        GALORE,
        IPS,
        MACR,
        AdjNorm,
        AdvDrop,
        ItemKNN,
        LightGCN,
        LightGCNBCE,
        MostPopular,
        Recommender,
        Reg,
        load,
    )
    from caged.report.audit import Audit, audit

_HOME = {
    "APDA": "caged.experiments.estimators",
    "AdjNorm": "caged.experiments.estimators",
    "AdvDrop": "caged.experiments.estimators",
    "Audit": "caged.report.audit",
    "CAGED": "caged.experiments.estimators",
    "CagedError": "caged.errors",
    "EASE": "caged.experiments.estimators",
    "GALORE": "caged.experiments.estimators",
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
    "audit": "caged.report.audit",
    "compare": "caged.experiments.compare",
    "dataset": "caged.data.source",
    "load": "caged.experiments.estimators",
    "split": "caged.data",
}

__all__ = [
    "APDA",
    "CAGED",
    "EASE",
    "GALORE",
    "IPS",
    "MACR",
    "AdjNorm",
    "AdvDrop",
    "Audit",
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
    "audit",
    "compare",
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
