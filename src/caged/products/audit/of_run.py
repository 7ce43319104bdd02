"""The audit of one of our own runs, and what its tests rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from caged.data.interactions import Interactions
from caged.evaluation.evaluate import Evaluation
from caged.products.audit.of_lists import audit_evaluation
from caged.products.audit.result import AuditResult, Evidence
from caged.runs.explain import titles_of
from caged.runs.loading import Loaded
from caged.runs.spec import ExperimentSpec

# Tests of known datasets that are not natural traffic.
_KNOWN: dict[tuple[str, str], Evidence] = {("coat", "test"): "random", ("yelp2018-ood", "test_ood"): "intervened"}


def audit_run(
    folder: Path,
    spec: ExperimentSpec,
    data: Loaded,
    evaluation: Evaluation,
    *,
    part: str = "test",
    further: Mapping[str, Evaluation] | None = None,
    command: str = "",
) -> AuditResult:
    """From the evaluation of the run in `folder` on `part`; `further` are evaluations on tests of the dataset."""
    named: dict[str, Interactions] = {**data.split.parts, **data.extra_tests}
    result = audit_evaluation(
        evaluation,
        data.split,
        relevant=named[part],
        further={name: (other, named[name]) for name, other in (further or {}).items()},
        evidence=evidence_of(data, part),
        titles={str(item): title for item, title in titles_of(folder).items()},
        name=f"{spec.method} on {data.described['name']}",
        protocol=spec.protocol,
        command=command,
    )
    others = {name: replace(other, evidence=evidence_of(data, name)) for name, other in result.further.items()}
    return replace(result, further=others)


def evidence_of(data: Loaded, part: str) -> Evidence:
    """What a part rests on: known of the dataset, made by the split, or said by the name of the part."""
    known = _KNOWN.get((str(data.described["name"]), part))
    if known is not None:
        return known
    if part == "test" and data.split.kind == "intervened":
        return "intervened"
    kinds: tuple[Evidence, ...] = get_args(Evidence)
    return next((kind for kind in kinds if kind in part), "natural")
