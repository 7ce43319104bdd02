"""What a key means, in plain sentences: that of its metric, that of its group, and which way is better."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from caged.data.popularity import POPULAR_SHARE
from caged.evaluation.metrics import MetricKey

_SHARES = {Fraction(1, 2): "half", Fraction(1, 3): "third", Fraction(1, 4): "quarter"}
_SHARES |= {Fraction(1, 5): "fifth", Fraction(1, 10): "tenth", Fraction(1, 20): "twentieth"}
_MEMBERS = {
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

CHANCE = "What chance showed"
# Two sentences: why this is the fairest judge.
WHY_FAIREST = (
    "Here chance, not a shop, chose what people saw, and what they liked and disliked was recorded, so nobody "
    "is rewarded for repeating what was popular enough to be shown. The only question left is whether a recommender "
    "puts what a person liked above what the same person did not like, which makes this the fairest judge there is."
)


def part_of_items(share: Fraction) -> str:
    """
    >>> part_of_items(Fraction(1, 5)), part_of_items(Fraction(1, 8))
    ('fifth', '12.5%')
    """
    return _SHARES.get(share, f"{100 * float(share):.4g}%")


def popular(share: Fraction = POPULAR_SHARE) -> str:
    """What popular items are."""
    return f"the most popular {part_of_items(share)} of the items with training interactions"


def niche(share: Fraction = POPULAR_SHARE) -> str:
    part = part_of_items(share)
    return f"all items but the most popular {part}; items without training interactions included"


def meaning(key: MetricKey, share: Fraction = POPULAR_SHARE) -> str:
    """`share` is that of the popular items.

    >>> meaning(MetricKey("hit", 5))
    'Share of users with at least one relevant item among the first 5. Higher is better.'
    """
    said = [key.metric.meaning.format(k=key.k), _group_words(key, share), _SENTENCES[key.metric.direction]]
    return " ".join(sentence for sentence in said if sentence)


def _group_words(key: MetricKey, share: Fraction) -> str:
    if key.chosen is None:
        usual = key.group and f"For {GROUP_NAMES[key.group].lower()} only: {_members(key.group, share)}."
        return usual or ""
    if key.chosen.group is None:
        return f"The family is {key.chosen.family}."
    return f"For {'users' if key.chosen.of_users else 'items'} with {key.chosen.family} = {key.chosen.group} only."


def _members(group: str, share: Fraction) -> str:
    """Who is in a group that is always there."""
    return {"popular": popular(share), "niche": niche(share), **_MEMBERS}[group]


def glossary(keys: Sequence[MetricKey], share: Fraction = POPULAR_SHARE) -> list[tuple[str, str]]:
    """An entry per metric and one per group that the keys are about; what holds for all forms is said once. Groups that
    somebody chose have no entry: their names are that person's own.

    >>> glossary([MetricKey("exposure_rate", 5, "popular")])[0][0]
    'exposure_rate@5 (popular items)'
    """
    metrics: dict[MetricKey, list[str | None]] = {}
    for key in keys:
        forms = metrics.setdefault(key.of(None), [])
        forms += [] if key.chosen else [key.group]
    groups = dict.fromkeys(group for forms in metrics.values() for group in forms if group)
    return [(_form(key, forms), meaning(key)) for key, forms in metrics.items()] + [
        (GROUP_NAMES[group], f"{_members(group, share)[0].upper()}{_members(group, share)[1:]}.") for group in groups
    ]


def _form(key: MetricKey, forms: Sequence[str | None]) -> str:
    """A metric that exists for groups only is called after them."""
    if None in forms or not forms:
        return str(key)
    return f"{key} ({', '.join(GROUP_NAMES[group].lower() for group in forms if group)})"
