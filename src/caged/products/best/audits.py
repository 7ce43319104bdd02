"""Before and after: the audit pages of bestsellers and of what was chosen."""

from __future__ import annotations

from pathlib import Path

from caged.evaluation.evidence import of_part
from caged.files import write_text
from caged.products.audit import audit_evaluation, audit_html
from caged.products.best.answer import AFTER, BEFORE, PAGE
from caged.products.best.judgement import CHOSEN, Judgement
from caged.products.best.served import item_table
from caged.products.best.shortlist import BESTSELLERS
from caged.runs.loading import Loaded

_PAGES = {BEFORE: (BESTSELLERS, "Before: bestsellers"), AFTER: (CHOSEN, "After: the chosen model")}


def write_audits(folder: Path, data: Loaded, judgement: Judgement, command: str) -> None:
    """From the evaluations on the test part. Where bestsellers were chosen, both pages are about them."""
    name, titles = data.facts["name"], _titles(data)
    for page, (role, _) in _PAGES.items():
        row = judgement.row(role) or judgement.rows[0]
        audit = audit_evaluation(
            judgement.evaluations[row.role],
            evidence=of_part("test", dataset=name, split=data.split.kind),
            titles=titles,
            name=f"{row.name} on {name}",
            protocol=data.spec.protocol,
            command=command,
        )
        others = [(words, other) for other, (_, words) in _PAGES.items() if other != page]
        write_text(folder / page, audit_html(audit, links=[("Back to the answer", PAGE), *others]))


def _titles(data: Loaded) -> dict[str, str]:
    table = item_table(data)
    if table is None or not {"item_id", "title"} <= set(table.column_names):
        return {}
    pairs = zip(table["item_id"].to_pylist(), table["title"].to_pylist(), strict=True)
    return {str(item): title for item, title in pairs}
