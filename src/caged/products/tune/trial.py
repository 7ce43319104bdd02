"""One trial: a setting trained on the training part and measured on the validation part.

Nothing of it is kept, unless somebody asks for the trained method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from caged.data import Development, Interactions
from caged.data.shown import ShownAtRandom
from caged.errors import DataError
from caged.evaluation.evaluate import evaluate, make_validator
from caged.evaluation.groups import grouping
from caged.evaluation.metrics import MetricKey, keys_of_shown
from caged.graph import BipartiteGraph
from caged.models import Method, registered
from caged.runs.loading import load_data
from caged.runs.protocols import HONEST
from caged.runs.spec import ExperimentSpec
from caged.seeding import Generators
from caged.training import Decisions, Loop, Observer

Trained = Callable[[Method[Any], Decisions], None]


def not_kept(method: Method[Any], decisions: Decisions, /) -> None:
    """A trial is there for its numbers."""


@dataclass(frozen=True, eq=False)
class SearchData:
    """What a search may see. The test part is not here: only its users and items, as rows of the catalogue."""

    train: Interactions
    valid: Interactions
    k: int  # at which recall decides the epoch
    name: str  # of the dataset
    shown: ShownAtRandom | None = None  # before the test, where the split has such a part

    @property
    def monitor(self) -> str:
        return f"recall@{self.k}"

    @property
    def fingerprints(self) -> dict[str, str]:
        shown = {} if self.shown is None else {"shown": self.shown.fingerprint}
        return {"train": self.train.fingerprint, "valid": self.valid.fingerprint, **shown}


def load_search_data(spec: ExperimentSpec) -> SearchData:
    """Train and validation of the split. The test pairs leave memory when this returns."""
    loaded = load_data(spec)
    parts: Development = loaded.split.development()
    if parts.valid is None or len(parts.valid) == 0:
        raise DataError(f"'{spec.source}' has no validation part, and a search decides on it; add one, or give a log")
    negative = loaded.split.valid_negative
    shown = None if negative is None else ShownAtRandom.of(parts.valid, negative)
    return SearchData(parts.train, parts.valid, loaded.spec.eval.k[0], loaded.facts["name"], shown)


def check_measured(keys: Sequence[MetricKey], data: SearchData, source: str) -> None:
    """Refuse what the validation part cannot say."""
    of_shown = next((key for key in keys if key.metric.of_shown), None)
    if of_shown is None:
        return
    if data.shown is None:
        raise DataError(
            f"{of_shown} rests on what chance showed, and '{source}' has no such record for validation; add a part "
            "valid_negative (what was shown at random before the test and not liked), or choose another metric, such "
            "as recall@20/niche"
        )
    if len(data.shown.liked) == 0 or len(data.shown.not_liked) == 0:
        raise DataError(
            f"{of_shown} compares what was shown at random and liked with what was not, and the validation part of "
            f"'{source}' has {len(data.shown.liked)} and {len(data.shown.not_liked)} such pairs; choose another metric"
        )


@dataclass(frozen=True)
class Outcome:
    metrics: dict[str, float]
    epochs: int
    best_epoch: int
    seconds: float


def run_trial(
    spec: ExperimentSpec,
    data: SearchData,
    device: torch.device,
    ks: Sequence[int],
    *,
    keys: Sequence[str] = (),
    observers: tuple[Observer, ...] = (),
    stop_requested: Callable[[], bool] = lambda: False,
    trained: Trained = not_kept,
) -> Outcome:
    """The validation metrics of the epoch with the best recall; a closed form learns from the training part alone.

    `keys` are measured after every epoch, too, for whoever observes. `trained` receives the method with its best state,
    and what validation decided.
    """
    begun = perf_counter()
    method = registered(spec.method).method(spec.config)
    groups = grouping(spec.eval.popular_share).of(data.train)
    every_epoch = dict.fromkeys([data.monitor, f"ndcg@{data.k}", *keys])
    wished = [key for key in map(MetricKey.parse, keys) if key.metric.of_shown]
    shown = data.shown if wished else None  # scoring its pairs takes time
    loop = Loop(
        method,
        BipartiteGraph.from_interactions(data.train, device, spec.train.engine),
        spec.train,
        Generators(spec.seed, device),
        make_validator(
            data.train,
            data.valid,
            device=device,
            metrics=list(every_epoch),
            groups=groups,
            shown=shown,
            users=spec.train.validation_users,
        ),
        monitor=data.monitor,
        observers=observers,
        stop_requested=stop_requested,
    )
    progress = loop.run()
    shown_ks = sorted(
        {*spec.eval.shown_k, *(key.k for key in map(MetricKey.parse, keys) if key.metric.of_shown and key.k)}
    )
    of_shown = [] if data.shown is None else keys_of_shown(shown_ks, groups.names)
    measured = evaluate(
        method.scorer(),
        train=data.train,
        valid=None,
        relevant=data.valid,
        ks=ks,
        list_length=spec.eval.list_length,
        metrics=[*HONEST.metrics(ks, spec.eval.list_length, groups.names), *of_shown],
        groups=groups,
        shown=data.shown,
        device=device,
    )
    trained(method, loop.decisions)
    seconds = perf_counter() - begun
    return Outcome(measured.report.metrics, progress.epochs_in_total, progress.stopping.best_epoch, seconds)
