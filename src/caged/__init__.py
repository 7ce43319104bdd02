"""caged: top-K recommendation that is not captured by popularity.

    import caged
    data = caged.Interactions.read("log.parquet")
    split = caged.split(data, seed=1)
    model = caged.LightGCN(embedding_size=64).fit(split.train, valid=split.valid)
    recs = model.recommend(user_ids, k=20)

Names are loaded on first use, so `import caged` costs nothing and pulls in neither torch nor the command line. Their
types stand in `__init__.pyi`.
"""

from __future__ import annotations

import importlib
from typing import Any

from caged._version import __version__
from caged.models.registry import METHODS

_HOMES = {
    "Adjusted": "caged.products.adjust",
    "Audit": "caged.products.audit",
    "CagedError": "caged.errors",
    "IdMap": "caged.data",
    "Interactions": "caged.data",
    "Recommender": "caged.runs.recommender",
    "Split": "caged.data",
    "adjust": "caged.products.adjust",
    "audit": "caged.products.audit",
    "compare": "caged.products.compare",
    "dataset": "caged.data.source",
    "load": "caged.runs.recommender",
    "split": "caged.data",
}
_METHODS = {known.public: known.name for known in METHODS.values() if known.public}

__all__ = ["__version__"]
__all__.extend([*_HOMES, *_METHODS])


def __getattr__(name: str) -> Any:
    if name in _METHODS:
        from caged.runs.recommender import class_of

        return class_of(_METHODS[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'caged' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
