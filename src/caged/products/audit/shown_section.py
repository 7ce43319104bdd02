"""The section of a page about what chance showed."""

from __future__ import annotations

import math

from caged.evaluation.metrics import MetricKey
from caged.page.definitions import CHANCE, WHY_FAIREST, meaning
from caged.page.html import ColumnHead, Section, Table, Term
from caged.page.units import in_table
from caged.products.audit.charts import interval_text
from caged.products.audit.result import AuditResult


def has_shown(audit: AuditResult) -> bool:
    """Whether it is known what chance showed, to at least one user who liked some of it."""
    return any(key.metric.of_shown and math.isfinite(audit.metrics[key]) for key in audit.keys)


def shown_section(audit: AuditResult) -> Section | None:
    if not has_shown(audit):
        return None
    keys = [key for key in audit.keys if key.metric.of_shown]
    users = audit.users.get(MetricKey("shown_auc", 0), 0)
    liked, not_liked = (audit.counts.get(name, 0) for name in ("shown_liked", "shown_not_liked"))
    counted = (
        f"{users:,} users were shown something at random that they liked and something that they did not; in all, "
        f"{liked:,} shown pairs were liked and {not_liked:,} were not. A shown_auc of 0.5 is a coin flip; what mere "
        "popularity reaches is no achievement either."
    )
    return Section(CHANCE, [WHY_FAIREST, counted], table=_table(audit, keys))


def _table(audit: AuditResult, keys: list[MetricKey]) -> Table:
    columns = [ColumnHead("ranked by", numeric=False), *(ColumnHead(key, meaning(key)) for key in keys)]
    own: list[str | Term] = [audit.name]
    for key in keys:
        between = interval_text(audit, key, in_table(key))
        own.append(f"{in_table(key)(audit.metrics[key])}{f' ({between})' if between else ''}")
    floors: list[list[str | Term]] = [
        [name, *(in_table(key)(values.get(key, math.nan)) for key in keys)] for name, values in audit.floors.items()
    ]
    return Table("How often what was liked is ranked above what was not, with 95% intervals", columns, [own, *floors])
