"""Benchmarks of training: one step, an epoch, an epoch of any method."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch

from benchmarks import reference
from benchmarks.floor import softmax_step_floor, step_floor
from benchmarks.graphs import Log, log_of
from benchmarks.profile import profiled
from benchmarks.setting import (
    BATCH,
    REFERENCE_SHARE,
    Prepared,
    ReferenceSampling,
    Setting,
    reference_model,
    sizes,
    with_gpu_peak,
)
from caged.graph import BipartiteGraph, Epoch, Sampler
from caged.models import METHODS
from caged.models.advdrop.method import AdvDrop, AdvDropConfig
from caged.models.contract import EpochContext, Method
from caged.models.galore.method import GALORE, GALOREConfig
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.models.softmax import Softmax, SoftmaxConfig
from caged.optimiser import adam
from caged.seeding import Generators
from caged.training.step import make_steps

LEARNING_RATE = 1e-3
L2 = 1e-4


class _Training:
    """A method on a graph with optimiser, sampler and some drawn batches, as the loop has them."""

    def __init__(self, method: Method[Any], log: Log, setting: Setting) -> None:
        self.setting = setting
        self.method = method
        self.graph = BipartiteGraph.from_interactions(log.train, setting.device)
        self.generators = Generators(1, setting.device)
        method.prepare(self.graph, self.generators)
        stage = method.stages()[-1]  # galore: fine-tuning; its first stage is LightGCN
        self.sampler = Sampler(self.graph, BATCH, stage.sampler or "interaction")
        self.context = EpochContext(stage.name, 1, self.sampler.steps, None, sampler=self.sampler)
        optimizer = adam(method.parameters(stage), LEARNING_RATE, setting.device)
        self.steps = make_steps(method, optimizer, self.generators, record=True)
        # A GPU epoch is short enough to be taken whole.
        on_gpu = setting.device.type == "cuda"
        self.count = self.sampler.steps if on_gpu else min(self.sampler.steps, 2 if setting.quick else 8)

    def sample(self) -> float:
        return self.setting.seconds(lambda: self.sampler.epoch(self.generators["sampling"]))

    def step(self) -> float:
        """Seconds per step, over `count` of them."""
        some = self._batches()
        return self.setting.seconds(lambda: self.steps.run([some])) / self.count

    def profile(self) -> dict[str, Any]:
        """What a step is made of."""
        some = self._batches()
        return profiled(lambda: self.steps.run([some]), self.count, self.setting.device)

    def _batches(self) -> Epoch:
        drawn = self.sampler.epoch(self.generators["sampling"])
        return Epoch(*(part[: self.count] for part in drawn.parts))

    def epoch(self) -> float:
        begin = self.setting.seconds(lambda: self.method.begin_epoch(self.context))
        return begin + self.sample() + self.sampler.steps * self.step()


class _ReferenceTraining:
    def __init__(self, log: Log, width: int, layers: int, setting: Setting) -> None:
        self.setting = setting
        self.model = reference_model(log, width, layers, setting)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)
        self.sampling = ReferenceSampling(log)
        self.count = 1 if setting.quick else 2
        self.triples = self.sampling.draw(self.count * BATCH)

    def step(self) -> float:
        work = partial(reference.train_steps, self.model, self.optimizer, self.triples, BATCH, L2)
        return self.setting.seconds(work) / self.count

    def epoch(self) -> float:
        steps = -(-self.sampling.triples // BATCH)
        return self.sampling.epoch() + steps * self.step()


def step(shape: str, width: int, layers: int, setting: Setting) -> Prepared:
    """Loss, backward and Adam on one batch."""
    return _training_case(shape, width, layers, setting, whole_epoch=False)


def epoch(shape: str, width: int, layers: int, setting: Setting) -> Prepared:
    """Sampling and all steps of an epoch; on CPU from some steps."""
    return _training_case(shape, width, layers, setting, whole_epoch=True)


def _training_case(shape: str, width: int, layers: int, setting: Setting, *, whole_epoch: bool) -> Prepared:
    log = log_of(shape)
    config = LightGCNConfig(embedding_size=width, layers=layers, l2=L2)

    def trained() -> _Training:
        training = _Training(LightGCN(config), log, setting)
        if setting.device.type == "cuda":
            training.epoch()
        return training

    ours, memory = with_gpu_peak(trained, setting.device)
    plain = _ReferenceTraining(log, width, layers, setting)
    graph = ours.graph
    steps = ours.sampler.steps if whole_epoch else 1
    floor = step_floor(graph, width, layers, setting.ceilings)
    facts: dict[str, Any] = {"layers": layers, "width": width, "batch_size": BATCH, **sizes(graph), **memory}
    if whole_epoch:
        facts |= {
            "steps": steps,
            "extrapolated_from_steps": {"ours": ours.count, "reference": plain.count},
            "reference_sampling_from_share": REFERENCE_SHARE,
        }
    return Prepared(
        ours=ours.epoch if whole_epoch else ours.step,
        reference=plain.epoch if whole_epoch else plain.step,
        data=log.origin,
        fraction_of_ceiling=lambda taken: floor.fraction(taken / steps),
        ceiling=floor.limit,
        facts=facts,
        profile=ours.profile,
    )


def softmax_step(shape: str, width: int, layers: int, setting: Setting) -> Prepared:
    """A step of the sampled softmax against the same step with BPR, both ours."""
    log = log_of(shape)
    config = SoftmaxConfig(embedding_size=width, layers=layers)
    ours = _Training(Softmax(config), log, setting)
    ours.method.begin_epoch(ours.context)  # log q
    plain = _Training(LightGCN(LightGCNConfig(embedding_size=width, layers=layers)), log, setting)
    candidates = min(BATCH, config.candidate_rows)
    floor = softmax_step_floor(ours.graph, width, layers, BATCH, candidates, setting.ceilings)
    facts = {"reference": "a step of lightgcn", "layers": layers, "width": width, "batch_size": BATCH}
    return Prepared(
        ours=ours.step,
        reference=plain.step,
        data=log.origin,
        fraction_of_ceiling=floor.fraction,
        ceiling=floor.limit,
        facts={**facts, "candidates": candidates, **sizes(ours.graph)},
        profile=ours.profile,
    )


def method_epoch(name: str, shape: str, width: int, setting: Setting) -> Prepared:
    """The epoch of a method (without validation and what follows it) against that of LightGCN."""
    log = log_of(shape)
    known = METHODS[name]
    sized = {"embedding_size": width} if "embedding_size" in {part.name for part in fields(known.config)} else {}
    ours = _Training(known.method(known.config(**sized)), log, setting)
    plain = _Training(LightGCN(LightGCNConfig(embedding_size=width)), log, setting)
    return Prepared(
        ours=ours.epoch,
        reference=plain.epoch,
        data=log.origin,
        fraction_of_ceiling=lambda taken: float("nan"),
        ceiling="none: work is not counted",
        facts={"reference": "lightgcn", "extrapolated_from_steps": {"ours": ours.count, "reference": plain.count}},
        profile=ours.profile,
    )


PHASE_STEPS = 100  # of an adversarial phase


def adversarial_phase(shape: str, width: int, setting: Setting) -> Prepared:
    """`PHASE_STEPS` steps of AdvDrop's adversary, on CPU from a tenth of them, against an epoch of LightGCN."""
    taken = PHASE_STEPS if setting.device.type == "cuda" else PHASE_STEPS // 10
    method = AdvDrop(AdvDropConfig(embedding_size=width, adv_steps=taken))
    return _phase(method, shape, width, setting, method.config.interval, PHASE_STEPS / taken)


def augmentation(shape: str, width: int, setting: Setting) -> Prepared:
    """The graph of one epoch of GALORE's fine-tuning, against an epoch of its pre-training, which is LightGCN."""
    return _phase(GALORE(GALOREConfig(embedding_size=width)), shape, width, setting, 1, 1.0)


def _phase(method: Method[Any], shape: str, width: int, setting: Setting, epoch: int, times: float) -> Prepared:
    """`times` what a method does before epoch number `epoch`."""
    log = log_of(shape)
    ours = _Training(method, log, setting)
    plain = _Training(LightGCN(LightGCNConfig(embedding_size=width)), log, setting)
    context = replace(ours.context, epoch=epoch)
    return Prepared(
        ours=lambda: times * setting.seconds(lambda: method.begin_epoch(context)),
        reference=plain.epoch,
        data=log.origin,
        fraction_of_ceiling=lambda taken: float("nan"),
        ceiling="none: work is not counted",
        facts={"reference": "an epoch of lightgcn", "extrapolated_by": times},
    )
