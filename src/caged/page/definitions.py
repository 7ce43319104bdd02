"""What a key means, in plain sentences: that of its metric, that of its group, and which way is better."""

from __future__ import annotations

from caged.evaluation.metrics import MetricKey

POPULAR = "the most popular fifth of the items with training interactions"
NICHE = "all items but the most popular fifth; items without training interactions included"

_GROUPS = {
    "popular": f"Only popular items count: {POPULAR}.",
    "niche": f"Only niche items count: {NICHE}.",
    "niche-taste": "Only users with niche taste: the fifth whose history holds the smallest share of popular items.",
    "diverse": "Only users in between: neither the fifth with the most nor the fifth with the least popular history.",
    "blockbuster": "Only blockbuster users: the fifth whose history holds the largest share of popular items.",
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
    said += [_GROUPS[key.group]] if key.group else []
    return " ".join([*said, _SENTENCES[key.metric.direction]]).rstrip()
