"""The audit of one of our own runs."""

from __future__ import annotations

from collections.abc import Mapping

from caged.evaluation.outcome import Evaluation
from caged.models import display_name
from caged.products.audit.evidence import Evidence, of_part
from caged.products.audit.of_lists import audit_evaluation
from caged.products.audit.result import AuditResult
from caged.runs.folder import RunFolder
from caged.runs.loading import Loaded


def audit_run(
    folder: RunFolder,
    data: Loaded,
    evaluation: Evaluation,
    *,
    part: str = "test",
    further: Mapping[str, Evaluation] | None = None,
    command: str = "",
) -> AuditResult:
    """From the evaluation of the run in `folder` on `part`; `further` are evaluations on tests of the dataset."""
    name = data.facts["name"]

    def rests_on(test: str) -> Evidence:
        return of_part(test, dataset=name, split=data.split.kind)

    return audit_evaluation(
        evaluation,
        evidence=rests_on(part),
        further={test: (other, rests_on(test)) for test, other in (further or {}).items()},
        titles={str(item): title for item, title in folder.titles().items()},
        name=f"{display_name(folder.run.method_name)}{', refitted,' if folder.spec.train.refit else ''} on {name}",
        protocol=folder.spec.protocol,
        command=command,
    )
