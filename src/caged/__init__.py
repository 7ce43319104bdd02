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
    from caged.products.audit.view import Audit, audit
    from caged.products.compare.comparison import compare
    from caged.runs.recommender import (
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

_HOME = {
    "APDA": "caged.runs.recommender",
    "AdjNorm": "caged.runs.recommender",
    "AdvDrop": "caged.runs.recommender",
    "Audit": "caged.products.audit.view",
    "CAGED": "caged.runs.recommender",
    "CagedError": "caged.errors",
    "EASE": "caged.runs.recommender",
    "GALORE": "caged.runs.recommender",
    "IPS": "caged.runs.recommender",
    "IdMap": "caged.data",
    "Interactions": "caged.data",
    "ItemKNN": "caged.runs.recommender",
    "LightGCN": "caged.runs.recommender",
    "LightGCNBCE": "caged.runs.recommender",
    "MACR": "caged.runs.recommender",
    "MostPopular": "caged.runs.recommender",
    "Recommender": "caged.runs.recommender",
    "Reg": "caged.runs.recommender",
    "Split": "caged.data",
    "audit": "caged.products.audit.view",
    "compare": "caged.products.compare.comparison",
    "dataset": "caged.data.source",
    "load": "caged.runs.recommender",
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
