"""What a key means, in plain sentences: that of its metric, that of its group, and which way is better."""

from __future__ import annotations

from collections.abc import Sequence

from caged.evaluation.metrics import MetricKey

POPULAR = "the most popular fifth of the items with training interactions"
NICHE = "all items but the most popular fifth; items without training interactions included"

_MEMBERS = {
    "popular": POPULAR,
    "niche": NICHE,
    "niche-taste": "the fifth of the users whose history holds the smallest share of popular items",
    "diverse": "the users in between: neither the fifth with the most nor the fifth with the least popular history",
    "blockbuster": "the fifth of the users whose history holds the largest share of popular items",
}
GROUP_NAMES = {
    "popular": "Popular items",
    "niche": "Niche items",
    "niche-taste": "Niche taste",
    "diverse": "In between",
    "blockbuster": "Blockbuster taste",
}
BETTER = {"up": "higher", "down": "lower", "zero": "near 0", "none": "neither"}  # by direction, for a cell
_SENTENCES = {"up": "Higher is better.", "down": "Lower is better.", "zero": "Best at 0.", "none": ""}
INTERVAL = "95% interval over the choice of users: where the value lies for other users like these. It says nothing "
INTERVAL += "about another training run."


def meaning(key: MetricKey) -> str:
    """
    >>> meaning(MetricKey("hit", 5))
    'Share of users with at least one relevant item among the first 5. Higher is better.'
    """
    said = [key.metric.meaning.format(k=key.k)]
    said += [f"For {GROUP_NAMES[key.group].lower()} only: {_MEMBERS[key.group]}."] if key.group else []
    return " ".join([*said, _SENTENCES[key.metric.direction]]).rstrip()


def glossary(keys: Sequence[MetricKey]) -> list[tuple[str, str]]:
    """An entry per metric and one per group that the keys are about; what holds for all forms is said once.

    >>> glossary([MetricKey("exposure_rate", 5, "popular")])[0][0]
    'exposure_rate@5 (popular items)'
    """
    metrics: dict[MetricKey, list[str | None]] = {}
    for key in keys:
        metrics.setdefault(key.of(None), []).append(key.group)
    groups = dict.fromkeys(group for forms in metrics.values() for group in forms if group)
    return [(_form(key, forms), meaning(key)) for key, forms in metrics.items()] + [
        (GROUP_NAMES[group], f"{_MEMBERS[group][0].upper()}{_MEMBERS[group][1:]}.") for group in groups
    ]


def _form(key: MetricKey, forms: Sequence[str | None]) -> str:
    """A metric that exists for groups only is called after them."""
    if None in forms:
        return str(key)
    return f"{key} ({', '.join(GROUP_NAMES[group].lower() for group in forms if group)})"
