"""Who is ahead in what, and how sure that is: the best method of a metric against the next best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import LEVEL
from caged.products.compare.differences import Difference, differences
from caged.products.compare.groups import Group

Certainty = Literal["seeds", "users", "open", "untested"]


@dataclass(frozen=True)
class Leader:
    """The best method of a metric; `lead` is its difference to the next best, None where several share the best."""

    metric: MetricKey
    method: str
    value: float
    lead: Difference | None

    @property
    def certainty(self) -> Certainty:
        """What the lead is larger than chance over, if it is; `open` where chance may explain it."""
        if self.lead is None:
            return "open"
        if self.lead.over_seeds is not None and math.isfinite(self.lead.over_seeds.p):
            return "seeds" if self.lead.over_seeds.p < LEVEL else "open"
        if self.lead.interval is None:
            return "untested"
        return "users" if self.lead.interval.low > 0 or self.lead.interval.high < 0 else "open"


def leader_of(groups: Sequence[Group], key: MetricKey, *, one_split: bool) -> Leader | None:
    """None where the metric has no better end, or some method has no value of it."""
    direction = key.metric.direction
    values = [group.mean(key) for group in groups]
    if direction not in ("up", "down") or not all(map(math.isfinite, values)):
        return None
    ranked = sorted(groups, key=lambda group: group.mean(key), reverse=direction == "up")
    best, second = ranked[0], ranked[1]
    if best.mean(key) == second.mean(key):
        return Leader(key, best.name, best.mean(key), None)
    (lead,) = differences(second, [best], [key], one_split=one_split)
    return Leader(key, best.name, best.mean(key), lead)
