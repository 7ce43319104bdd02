"""The benchmarks: what is measured under which name, against what, and how much work it is."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks import growth, large, reference
from benchmarks.closed_form import closed_form
from benchmarks.floor import propagation_floor
from benchmarks.graphs import Log, log_of
from benchmarks.setting import (
    BATCH,
    REFERENCE_SHARE,
    Prepared,
    ReferenceSampling,
    Setting,
    items_of_users,
    reference_model,
    sizes,
)
from benchmarks.timing import Measurement, replayed
from benchmarks.training_cases import adversarial_phase, augmentation, epoch, method_epoch, softmax_step, step
from benchmarks.update_case import update
from caged.data import Interactions, carve_validation
from caged.data.seen import Seen
from caged.evaluation.evaluate import make_validator
from caged.evaluation.topk import Ranker
from caged.graph import BipartiteGraph, Sampler, Tables, degree_weights, propagate, uniform_layers
from caged.models import METHODS
from caged.models.contract import DotScorer
from caged.seeding import Generators

K = 20  # places of a list


class Case(NamedTuple):
    name: str
    prepare: Callable[[Setting], Prepared]
    one_thread: bool = False  # judged on one thread, all cores reported beside it
    rounds: int = 5


# ------------------------------------------------------------------------------------------- propagation


def propagation(shape: str, width: int, layers: int, setting: Setting) -> Prepared:
    """Forward and backward through L layers, dense gradients; on CUDA ours is recorded, as training takes it."""
    log = log_of(shape)
    graph = BipartiteGraph.from_interactions(log.train, setting.device)
    weights = degree_weights(graph)
    model = reference_model(log, width, layers, setting)
    tables = Tables(*(part.weight.detach().clone().requires_grad_() for part in (model.users, model.items)))
    gradients = Tables(*(torch.ones_like(part) for part in tables))

    def ours() -> None:
        tables.users.grad = tables.items.grad = None
        torch.autograd.backward(propagate(weights, tables, uniform_layers(layers)), gradients)

    def plain(model: Any) -> None:
        model.zero_grad()
        torch.autograd.backward(model(), gradients)

    floor = propagation_floor(graph, width, layers, setting.ceilings)
    return Prepared(
        ours=setting.timed(replayed(ours, setting.device)),
        reference=setting.timed(partial(plain, model)),
        data=log.origin,
        fraction_of_ceiling=floor.fraction,
        ceiling=floor.limit,
        others=dict(_other_propagations(model, width, layers, gradients, setting)),
        facts={"layers": layers, "width": width, **sizes(graph), **_missing("torch_geometric")},
    )


def _other_propagations(
    model: Any, width: int, layers: int, gradients: Tables, setting: Setting
) -> Iterator[tuple[str, Measurement]]:
    rows = torch.cat([model.users.weight, model.items.weight]).detach()
    matrix = model.adjacency.to_sparse_csr()
    gradient = torch.cat(gradients)

    def csr() -> None:  # the matrix is symmetric, so the backward pass is the forward pass on gradients
        for start in (rows, gradient):
            total = layer = start
            for _ in range(layers):
                layer = matrix @ layer
                total = total + layer
            total / (layers + 1)

    yield "csr", setting.timed(csr)
    if importlib.util.find_spec("torch_geometric") is not None:
        edges = model.adjacency.indices()
        theirs = importlib.import_module("torch_geometric.nn").LightGCN(len(rows), width, layers).to(setting.device)

        def pyg() -> None:
            theirs.zero_grad()
            theirs.get_embedding(edges).backward(gradient)

        yield "pyg", setting.timed(pyg)


# -------------------------------------------------------------------------------- sampling and evaluation


def sampling(shape: str, setting: Setting) -> Prepared:
    """All triples of an epoch."""
    log = log_of(shape)
    graph = BipartiteGraph.from_interactions(log.train, setting.device)
    sampler = Sampler(graph, BATCH)
    generators = Generators(1, setting.device)
    # Per triple: 8 random bytes, a permutation of 4, three columns read and written twice at 4 bytes, a weight.
    moved = sampler.triples * (8 + 4 + 3 * 4 * 4 + 4)
    return Prepared(
        ours=setting.timed(lambda: sampler.epoch(generators["sampling"])),
        reference=ReferenceSampling(log).epoch,
        data=log.origin,
        fraction_of_ceiling=lambda taken: moved / taken / setting.ceilings.memory_bytes_per_s,
        ceiling="copy in memory",
        facts={"triples": sampler.triples, "reference_sampling_from_share": REFERENCE_SHARE},
    )


class _Lists:
    """Lists of all users by random vectors, and the reference that makes them from the same."""

    def __init__(self, train: Interactions, width: int, setting: Setting) -> None:
        draw = torch.Generator().manual_seed(1)
        users, items = (torch.randn(rows, width, generator=draw) for rows in (train.user_count, train.item_count))
        self.scorer = DotScorer(Tables(users.to(setting.device), items.to(setting.device)))
        self.users, self.items = users.numpy(), items.numpy()
        self._seen = items_of_users(train)
        self._flops = 2 * len(users) * len(items) * width
        self._setting = setting

    def prepared(self, ours: Callable[[], object], data: str, **more: Any) -> Prepared:
        return Prepared(
            ours=self._setting.timed(ours),
            reference=self._setting.timed(lambda: reference.top_k(self.users, self.items, self._seen, K)),
            data=data,
            fraction_of_ceiling=lambda taken: self._flops / taken / self._setting.ceilings.flops,
            ceiling="matrix product",
            **more,
        )


def validation(shape: str, width: int, setting: Setting) -> Prepared:
    """What the loop does after an epoch: lists of all users and two metrics. The reference makes the lists only."""
    log = log_of(shape)
    train, valid = carve_validation(log.train, seed=1)
    lists = _Lists(train, width, setting)
    validate = make_validator(train, valid, setting.device, k=K)
    facts = {"k": K, "width": width, "metrics": [f"recall@{K}", f"ndcg@{K}"], "reference": "lists, no metrics"}
    return lists.prepared(lambda: validate(lists.scorer), log.origin, facts=facts)


def evaluation(shape: str, width: int, setting: Setting) -> Prepared:
    """Top-20 lists of all users over the whole catalogue, training items masked."""
    log = log_of(shape)
    lists = _Lists(log.train, width, setting)
    rank = Ranker(np.arange(log.train.user_count), K, seen=Seen(log.train), device=setting.device)
    return lists.prepared(
        lambda: rank(lists.scorer),
        log.origin,
        others=dict(_other_top_k(lists.users, lists.items, log, setting)),
        facts={
            "k": K,
            "width": width,
            **_missing("implicit", "faiss"),
            "reference_threads": "of numpy's BLAS, limited by OPENBLAS_NUM_THREADS alone",
        },
    )


def _other_top_k(users: Any, items: Any, log: Log, setting: Setting) -> Iterator[tuple[str, Measurement]]:
    if importlib.util.find_spec("implicit") is not None:
        from scipy.sparse import csr_matrix

        topk = importlib.import_module("implicit.cpu.topk").topk
        pairs = (np.ones(len(log.train), dtype=np.float32), (log.train.users, log.train.items))
        seen = csr_matrix(pairs, shape=(len(users), len(items)))
        yield "implicit", setting.timed(lambda: topk(items, users, K, filter_query_items=seen))
    if importlib.util.find_spec("faiss") is not None:
        index = importlib.import_module("faiss").IndexFlatIP(items.shape[1])
        index.add(items)
        yield "faiss_without_masking", setting.timed(lambda: index.search(users, K))


def large_evaluation(setting: Setting) -> Prepared:
    """A sample of users against a catalogue of a million, in a process of its own, whose memory is measured."""
    facts: dict[str, Any] = {}

    def ours() -> float:
        facts.update(large.in_own_process(setting.device.type, setting.threads, quick=setting.quick))
        return float(facts["ours_s"])

    def flops(taken: float) -> float:
        return float(facts["flops"]) / taken / setting.ceilings.flops

    return Prepared(
        ours=ours,
        reference=lambda: float(facts["reference_s"]),
        data="generated vectors",
        fraction_of_ceiling=flops,
        ceiling="matrix product",
        facts=facts,
        once=True,
    )


_EPOCHS_OF_ONE_MILLION: dict[tuple[str, int], float] = {}  # seconds by device and threads, in this run


def growth_epoch(millions: int, setting: Setting) -> Prepared:
    """An epoch with `batch_size = "auto"`; the reference is linear growth from a million interactions."""
    where = (setting.device.type, setting.threads)
    facts: dict[str, Any] = {"reference": "the epoch of a million interactions, times their number in millions"}

    def measured(count: int) -> dict[str, Any]:
        return growth.in_own_process(count * 1_000_000, *where, quick=setting.quick)

    def ours() -> float:
        facts.update(measured(millions))
        if millions == 1:
            _EPOCHS_OF_ONE_MILLION[where] = float(facts["ours_s"])
        return float(facts["ours_s"])

    def linear() -> float:
        if where not in _EPOCHS_OF_ONE_MILLION:
            _EPOCHS_OF_ONE_MILLION[where] = float(measured(1)["ours_s"])
        return millions * _EPOCHS_OF_ONE_MILLION[where]

    return Prepared(
        ours=ours,
        reference=linear,
        data="generated",
        fraction_of_ceiling=lambda taken: float("nan"),
        ceiling="none: see step",
        facts=facts,
        once=True,
    )


def _missing(*packages: str) -> dict[str, list[str]]:
    """Which of the libraries to compare with are not installed."""
    return {"not_installed": [name for name in packages if importlib.util.find_spec(name) is None]}


def _cases() -> Iterator[Case]:
    for shape in ("ml-1m", "pinterest", "tiny"):
        for width in (64, 256) if shape != "tiny" else (8,):
            yield Case(
                f"propagation/{shape}/k{width}", partial(propagation, shape, width, 3), one_thread=True, rounds=9
            )
        yield Case(f"sampling/{shape}", partial(sampling, shape), one_thread=True)
    yield Case("step/ml-1m/k64", partial(step, "ml-1m", 64, 3), one_thread=True)
    yield Case("step/pinterest/k64", partial(step, "pinterest", 64, 3), one_thread=True)
    yield Case("step/tiny/k8", partial(step, "tiny", 8, 2), one_thread=True)
    yield Case("softmax_step/ml-1m/k64", partial(softmax_step, "ml-1m", 64, 3), one_thread=True, rounds=9)
    yield Case("softmax_step/ml-1m/k256", partial(softmax_step, "ml-1m", 256, 3), rounds=9)
    yield Case("softmax_step/tiny/k8", partial(softmax_step, "tiny", 8, 2))
    yield Case("epoch/ml-1m/k64", partial(epoch, "ml-1m", 64, 3), one_thread=True)
    yield Case("epoch/ml-1m/k256", partial(epoch, "ml-1m", 256, 2), rounds=3)  # the CAGED paper's depth and width
    yield Case("epoch/tiny/k8", partial(epoch, "tiny", 8, 2))
    yield Case("update/ml-1m/k256", partial(update, "ml-1m", 256), rounds=3)
    yield Case("update/tiny/k8", partial(update, "tiny", 8), rounds=3)
    yield Case("validation/ml-1m/k256", partial(validation, "ml-1m", 256))
    yield Case("validation/tiny/k8", partial(validation, "tiny", 8))
    yield Case("evaluation/ml-1m/k256", partial(evaluation, "ml-1m", 256))
    yield Case("evaluation/tiny/k8", partial(evaluation, "tiny", 8))
    yield Case("evaluation/1m-x-1m/k64", large_evaluation, rounds=1)
    for name, known in METHODS.items():
        if name != "lightgcn" and known.method(known.config()).stages():
            yield Case(f"methods/{name}/ml-1m/k256", partial(method_epoch, name, "ml-1m", 256), rounds=3)
    for shape, width in (("ml-1m", 256), ("tiny", 8)):
        yield Case(f"phases/advdrop/{shape}/k{width}", partial(adversarial_phase, shape, width), rounds=3)
        yield Case(f"phases/galore/{shape}/k{width}", partial(augmentation, shape, width), rounds=3)
    for method in ("itemknn", "ease"):
        for shape in ("ml-100k", "ml-latest-small", "ml-1m", "tiny"):
            if (method, shape) != ("ease", "ml-latest-small"):  # its 9,724 items are a minute of inverting
                yield Case(f"closed_form/{method}/{shape}", partial(closed_form, method, shape), one_thread=True)
    for millions in (1, 10, 50):
        yield Case(f"growth/{millions}m/k64", partial(growth_epoch, millions), rounds=1)


def cases() -> dict[str, Case]:
    """Every benchmark by name. `tiny` ones exist for tests and have to be asked for."""
    return {case.name: case for case in _cases()}
