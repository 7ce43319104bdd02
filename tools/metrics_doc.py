"""The generated part of `docs/metrics.md`: a line for each row of the table of metrics.

    python -m tools.metrics_doc docs/metrics.md

rewrites what stands between `<!-- metrics: all -->` and `<!-- end -->` and leaves the rest alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from caged.data.popularity import ITEM_GROUPS, USER_GROUPS
from caged.evaluation.metrics import METRICS, Metric, OfSums
from caged.page.definitions import BETTER
from caged.page.text_table import markdown_table
from tools.marked import filled, rewrite

HEADER = ("metric", "what it says", "better", "for", "interval", "needs a test")
FORMS = {"everything": (None,), "item groups": ITEM_GROUPS, "user groups": USER_GROUPS}


def updated(text: str, _: Path) -> str:
    """The document with the table generated anew."""
    return filled(text, {"metrics": lambda _: markdown_table(HEADER, map(_row, METRICS.values()))})


def _row(metric: Metric) -> list[str]:
    forms = [form for form, groups in FORMS.items() if set(groups) <= set(metric.groups)]
    forms += ["items with vectors"] if metric.of_vectors else []
    forms += ["families of items"] if metric.of_family else []
    return [
        f"`{metric.name}{'@k' if metric.has_k else ''}`",
        metric.meaning.format(k="k"),
        BETTER[metric.direction],
        ", ".join(forms),
        "yes" if isinstance(metric.formula, OfSums) else "no",
        "yes" if metric.needs_test else "no",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    rewrite(arguments, updated, "Generate the table of docs/metrics.md anew.")


if __name__ == "__main__":
    main()
