"""From a specification to the data it names: read, filtered, split, described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from caged.data import Interactions, Source, Split, load, training_catalogue, validate_log
from caged.data.cgraph.pairs import MappedInteractions
from caged.data.filters import k_core
from caged.data.seen import Seen
from caged.errors import DataError
from caged.evaluation.lists import USUAL_K, check_k, usual_k
from caged.runs.protocols import protocol_named, split_source
from caged.runs.spec import ExperimentSpec


class DatasetFacts(TypedDict):
    """What `run.json` says about the data."""

    name: str
    users: int
    items: int
    notes: list[str]
    merged_duplicates: int
    split: dict[str, Any]
    interactions: dict[str, int]
    fingerprints: dict[str, str]
    split_fingerprint: str


@dataclass(frozen=True, eq=False)
class Loaded:
    """The split of an experiment, further tests that come with the dataset, and what is said about both."""

    split: Split
    extra_tests: Mapping[str, Interactions]
    facts: DatasetFacts
    path: Path
    spec: ExperimentSpec  # as it was asked for, its list length within the catalogue


def load_data(spec: ExperimentSpec, path: str | None = None) -> Loaded:
    """What the specification asks for; `path` is where a resumed run found it before."""
    protocol = protocol_named(spec.protocol)
    source = load(
        path or spec.source,
        columns=spec.data.columns(),
        min_rating=spec.data.min_rating,
        catalogue=protocol.catalogue,
    )
    if spec.data.k_core is not None:
        source = _core_of(source, spec.data.k_core)
    parts = split_source(source, protocol, spec.data.split_seed, kind=spec.data.split, mark=spec.data.validate_on)
    for part in parts.parts.values():
        if isinstance(part, MappedInteractions):
            part.check()  # before anything is trained, or written
    if spec.data.catalogue == "train":
        seen = training_catalogue(parts, source.extra_tests, listed=source.listed_items)
        parts = seen.split
        source = replace(source, extra_tests=seen.further, notes=(*source.notes, *seen.notes))
    facts = _facts(source, parts)
    if spec.eval.k == (USUAL_K,) and facts["items"] < USUAL_K:
        k = usual_k(facts["items"])
        facts["notes"].append(f"there are {facts['items']} items, so lists are cut at k={k} instead of {USUAL_K}")
        spec = replace(spec, eval=replace(spec.eval, k=(k,)))
    for k in spec.eval.k:
        check_k(k, facts["items"])
    return Loaded(parts, source.extra_tests, facts, source.path, spec)


def _facts(source: Source, parts: Split) -> DatasetFacts:
    named = {**parts.parts, **source.extra_tests}
    return {
        "name": source.name,
        "users": parts.train.user_count,
        "items": parts.train.item_count,
        "notes": list(source.notes),
        "merged_duplicates": sum(part.merged for part in source.contents.values()),
        "split": {"kind": parts.kind, "parameters": dict(parts.parameters), "notes": dict(parts.notes)},
        "interactions": {name: len(part) for name, part in named.items()},
        "fingerprints": {
            **{name: part.fingerprint for name, part in named.items()},
            **({} if parts.valid is None else {"development": Seen(parts.train, parts.valid).fingerprint}),
        },
        "split_fingerprint": parts.fingerprint,
    }


def _core_of(source: Source, k: int) -> Source:
    if source.log is None:
        raise DataError(
            f"data.k_core is {k}, but '{source.name}' is already split and its parts stay as they are; "
            f"leave data.k_core out, or give one log"
        )
    core = k_core(source.log, k, k, where=str(source.path))
    validate_log(core, f"the {k}-core of {source.path}")
    return replace(source, log=core)
