"""What is no achievement: the values of the shown-only test that random choice and mere popularity reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caged.data.ids import Array
from caged.evaluation.aligned import Aligned
from caged.evaluation.metrics import Mean, MetricKey
from caged.evaluation.reference import Reference
from caged.evaluation.shown import Candidates, ShownScores

RANDOM_CHOICE, MOST_POPULAR = "random choice", "most popular"


def shown_floors(
    reference: Reference, candidates: Candidates, keys: Sequence[MetricKey], users: Array
) -> dict[str, dict[str, float]]:
    """Of the keys that rest on what was shown at random: by whose floor it is, then by key; over the given users."""
    degrees = reference.item_groups.degrees[candidates.items].astype(np.float64)
    known = {RANDOM_CHOICE: ShownScores.of_random_choice(candidates), MOST_POPULAR: ShownScores(candidates, degrees)}
    nothing = np.empty((len(users), 0), dtype=np.intp)  # no lists are needed
    aligned = {name: Aligned(reference, users, nothing, scores) for name, scores in known.items()}
    return {name: {key: _mean(key, one) for key in keys if key.metric.of_shown} for name, one in aligned.items()}


def _mean(key: MetricKey, lists: Aligned) -> float:
    formula = key.metric.formula
    assert isinstance(formula, Mean), f"{key} has no value per user"
    values = formula.of_user(lists, key.k, key.group)
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
