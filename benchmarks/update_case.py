"""Benchmark of one update of CAGED: the estimator's pass over all edges, scoring them, the blend, the diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from benchmarks import reference
from benchmarks.graphs import Log, log_of
from benchmarks.setting import BATCH, Prepared, Setting, with_gpu_peak
from caged.graph import BipartiteGraph
from caged.models.caged.method import CAGED, CAGEDConfig
from caged.models.contract import EpochContext
from caged.seeding import Generators

# Per edge and K^2, at three hidden layers: 46 weights, two directions, three products in training and one in scoring.
FLOPS_PER_EDGE = 2 * 46 * 2 * (3 + 1)
SLICE = 4 * BATCH  # edges that are updated on CPU; whole batches, since both sides pay for padding differently
QUICK_SLICE = BATCH


class _Updates:
    """A CAGED as after its first epoch, whose updates are timed as a whole and by part."""

    def __init__(self, config: CAGEDConfig, graph: BipartiteGraph, setting: Setting) -> None:
        self._setting = setting
        self._taken: list[dict[str, float]] = []
        self.method = CAGED(config)
        self.method.prepare(graph, Generators(1, setting.device))

    def __call__(self) -> float:
        ctx = EpochContext("train", 1, 1, None, improved=True, metrics={"recall@20": 0.0})
        taken = self._setting.seconds(lambda: self.method.end_epoch(ctx))
        self._taken.append(ctx.log["update_seconds"])
        return taken

    def parts(self) -> dict[str, float]:
        """Median seconds; the first update, which records, is not counted."""
        counted = self._taken[1:] or self._taken
        return {name: median(update[name] for update in counted) for name in counted[0]}


def update(shape: str, width: int, setting: Setting) -> Prepared:
    """One update with the values of the preset `movie`; on CPU of a slice of the edges, and the rest extrapolated.

    The reference on CUDA is the same update without a recording; on CPU it is the estimator as the paper writes it,
    with concatenated inputs and without diagnostics.
    """
    log = log_of(shape)
    config = CAGEDConfig(embedding_size=width, layers=2, lam=1.0, beta=0.0, eps=5e-4, estimator_batch_size=BATCH)
    on_gpu = setting.device.type == "cuda"
    graph = _graph(log, None if on_gpu else QUICK_SLICE if setting.quick else SLICE, setting)
    share = graph.edge_count / len(log.train)
    ours = _Updates(config, graph, setting)
    _, memory = with_gpu_peak(ours, setting.device) if on_gpu else (None, {})
    flops = FLOPS_PER_EDGE * len(log.train) * width**2
    facts: dict[str, Any] = {
        "reference": "the same, not recorded" if on_gpu else "concatenated inputs, no diagnostics",
        "estimator_precision": ours.method.estimator.precision,
        "width": width,
        "batch_size": BATCH,
        "flops": flops,
        "users": log.train.user_count,
        "items": log.train.item_count,
        "interactions": len(log.train),
        "extrapolated_from_share": share,
        **memory,  # of an update, on top of tables, edges and weights
    }

    def measured() -> float:
        taken = ours() / share
        facts["parts_s"] = {name: seconds / share for name, seconds in ours.parts().items()}
        return taken

    plain = _Updates(replace(config, estimator_capture=False), graph, setting) if on_gpu else None
    by_hand = plain or _literal_update(ours.method, setting)
    return Prepared(
        ours=measured,
        reference=lambda: by_hand() / share,
        data=log.origin,
        fraction_of_ceiling=lambda taken: flops / taken / setting.ceilings.flops,
        ceiling="matrix product",
        facts=facts,
    )


def _graph(log: Log, edges: int | None, setting: Setting) -> BipartiteGraph:
    """All edges, or the first so many with only their users: what is done per node would weigh too much otherwise."""
    train = log.train
    kept = slice(None if edges is None else edges)
    users = train.users[kept]
    user_count = train.user_count if len(users) == len(train) else int(users[-1]) + 1
    return BipartiteGraph.from_edges(users, train.items[kept], user_count, train.item_count, setting.device)


def _literal_update(method: CAGED, setting: Setting) -> Callable[[], float]:
    model = reference.PairAutoencoder(method.config.embedding_size).to(setting.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=method.config.estimator_learning_rate)
    users, items = method.graph.users.long(), method.graph.items.long()
    vectors = method.scorer().vectors
    assert vectors is not None
    weights = (method.weights.to_user.clone(), method.weights.to_item.clone())

    def work() -> None:
        reference.update_weights(model, optimizer, vectors, (users, items), weights, BATCH, method.config.eps)

    return lambda: setting.seconds(work)
