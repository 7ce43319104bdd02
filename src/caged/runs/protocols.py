"""Protocols: what an experiment may look at, and when. Every reported number carries the name of its protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from caged.data import Development, Split, given_split, split_log, validate_on
from caged.data.source import Source
from caged.errors import ConfigError, DataError, unknown
from caged.evaluation.group_names import NONE_CHOSEN, GroupNames
from caged.evaluation.metrics import MetricKey, metric_keys, reported_keys


@dataclass(frozen=True)
class Protocol:
    name: str
    summary: str
    warning: str | None
    catalogue: Literal["occurring", "max_id"]
    method: Mapping[str, Any] = field(default_factory=dict)  # values it owns; applied where the method has the key
    train: Mapping[str, Any] = field(default_factory=dict)
    published_metrics: bool = False  # reports also what only exists to compare with published tables

    def metrics(self, ks: Sequence[int], list_length: int, chosen: GroupNames = NONE_CHOSEN) -> list[MetricKey]:
        """The keys that a report under this protocol holds; of metrics that read deeper than k, those that fit lists of
        `list_length` places: in shorter lists they would find less and look better. `chosen` are further groups."""
        keys = metric_keys(ks, chosen) if self.published_metrics else reported_keys(ks, chosen)
        return [key for key in keys if (key.metric.depth or 0) <= list_length]


HONEST = Protocol(
    name="honest",
    summary="7:1:2 split; every decision on validation; test read once, after training; standard NDCG",
    warning=None,
    catalogue="occurring",
)
PAPER = Protocol(
    name="paper",
    summary="the released two-file split, 2 layers, per-user sampler, everything selected on the test part",
    warning="protocol 'paper' selects the epoch on the test part: its numbers are only for comparison with the "
    "printed tables, not an estimate of quality",
    catalogue="max_id",
    method={"layers": 2},
    train={"sampler": "user_equal"},
    published_metrics=True,
)
PROTOCOLS = {protocol.name: protocol for protocol in (HONEST, PAPER)}


def protocol_named(name: str) -> Protocol:
    if name not in PROTOCOLS:
        raise ConfigError(unknown("protocol", name, PROTOCOLS))
    return PROTOCOLS[name]


def check_validation(protocol: Protocol, mark: str | None, validation: str, *, refit: bool = False) -> None:
    """Refuse `train.validation` and `train.refit` where they contradict what else was said."""
    if protocol is PAPER and refit:
        raise ConfigError(
            "train.refit is true, but protocol 'paper' decides on the test part, and nothing may train on that; leave "
            "--refit out, or use --protocol honest"
        )
    if protocol is PAPER and validation != "auto":
        raise ConfigError(
            f"train.validation is '{validation}', but protocol 'paper' decides on the test part; use --protocol honest"
        )
    if mark is not None and validation == "no":
        raise ConfigError(f"data.validate_on is '{mark}', but train.validation is 'no'; leave one of them out")


def check_split_options(protocol: Protocol, kind: str, mark: str | None, catalogue: str = "all") -> None:
    """`paper` owns its split and catalogue and decides on the test part: there is nothing to choose."""
    for name, value, default in (
        ("split", kind, "random"),
        ("validate_on", mark, None),
        ("catalogue", catalogue, "all"),
    ):
        if protocol is PAPER and value != default:
            raise ConfigError(f"data.{name} is '{value}', but protocol 'paper' fixes the split; use --protocol honest")


def split_source(
    source: Source, protocol: Protocol, seed: int, *, kind: str = "random", mark: str | None = None
) -> Split:
    """The split that the protocol prescribes for this source.

    Under `honest`, `kind` is how a log is split and `mark` (COLUMN=VALUE) which of the held-out interactions
    validate; the decisions stay on validation and test is read once. `paper` reads neither: see `check_split_options`.
    """
    if protocol is PAPER:
        if source.parts is None or "valid" in source.parts or "test" not in source.parts:
            raise DataError(
                f"protocol 'paper' needs a released two-file split (train.txt and test.txt), "
                f"'{source.name}' is not one; use --protocol honest"
            )
        return given_split(source.parts, seed=seed, protocol="paper")
    parts = _honest_split(source, seed, kind)
    return parts if mark is None else validate_on(parts, mark)


def _honest_split(source: Source, seed: int, kind: str) -> Split:
    if source.parts is not None:
        if kind != "random":
            raise DataError(
                f"data.split is '{kind}', but '{source.name}' is split into {', '.join(source.parts)} already; leave "
                f"data.split out or give the log as one file"
            )
        return given_split(source.parts, seed=seed, protocol="honest")
    if source.log is None:
        raise DataError(f"'{source.name}' holds no interactions; give a log file or a folder with parts")
    return split_log(source.log, kind, seed=seed)


def selection_parts(parts: Split, protocol: Protocol, *, validated: bool = True) -> Development:
    """What training may see: train, and the part that decides. Under `honest` the test part is not among them.

    Where nothing decides (not `validated`), the validation part is trained on.
    """
    if not validated:
        return parts.development().whole()
    if protocol is PAPER:
        return Development(parts.train, parts.test)
    return parts.development()
