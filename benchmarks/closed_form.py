"""Benchmarks of methods in closed form: from a log to a fitted model, against the library that is known for it."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.graphs import Log, log_of
from benchmarks.setting import Prepared, Setting, sizes
from caged.graph import BipartiteGraph
from caged.models import METHODS
from caged.models.item_item import training_matrix
from caged.seeding import Generators

NEIGHBOURS = 100
RIDGE = 500.0


def closed_form(method: str, shape: str, setting: Setting) -> Prepared:
    """Fitting on a graph that is there already, as the reference starts from a matrix that is there already."""
    log = log_of(shape)
    graph = BipartiteGraph.from_interactions(log.train, setting.device)
    known = METHODS[method]
    fitted = known.method(known.config())

    def ours() -> None:
        fitted.prepare(graph, Generators(1, setting.device))
        fitted.fit_closed_form()

    name, reference = REFERENCES[method](log, graph, setting)
    return Prepared(
        ours=setting.timed(ours),
        reference=setting.timed(reference),
        data=log.origin,
        fraction_of_ceiling=lambda taken: float("nan"),
        ceiling="none",
        facts={"reference": name, **sizes(graph)},
    )


def _neighbours(log: Log, graph: BipartiteGraph, setting: Setting) -> tuple[str, Callable[[], object]]:
    matrix = training_matrix(graph)
    if importlib.util.find_spec("implicit") is None:
        return "scipy's product and a full sort; implicit is not installed", lambda: _sorted_similarities(matrix)
    recommender: Any = importlib.import_module("implicit.nearest_neighbours").CosineRecommender

    def implicit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it converts the matrix, in no time
            recommender(K=NEIGHBOURS, num_threads=setting.threads).fit(matrix, show_progress=False)

    return "implicit's CosineRecommender", implicit


def _sorted_similarities(matrix: Any) -> Any:
    norms = np.sqrt(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    similar = (matrix.T.tocsr() @ matrix).tocsr()
    row = np.repeat(np.arange(matrix.shape[1]), np.diff(similar.indptr))
    return np.lexsort((-similar.data / (norms[row] * norms[similar.indices]), row))


def _linear_model(log: Log, graph: BipartiteGraph, setting: Setting) -> tuple[str, Callable[[], object]]:
    """As EASE's paper prints it."""
    matrix = training_matrix(graph)

    def inverted() -> Any:
        gram = torch.from_numpy((matrix.T @ matrix).toarray())
        gram.diagonal().add_(RIDGE)
        inverse = torch.linalg.inv(gram)
        weights = inverse / -inverse.diagonal()
        return weights.fill_diagonal_(0.0)

    return "a general inverse, as EASE's paper prints it", inverted


REFERENCES = {"itemknn": _neighbours, "ease": _linear_model}
