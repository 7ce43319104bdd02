"""A comparison in sentences: who wins what and how sure that is, and what each method does to the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caged.evaluation.metrics import MetricKey
from caged.page.html import Headline
from caged.page.numbers import UNDEFINED
from caged.page.units import in_words
from caged.products.compare.comparison import Comparison
from caged.products.compare.differences import Difference
from caged.products.compare.leaders import Certainty, Leader
from caged.products.compare.tables import change

_SURE: dict[Certainty, str] = {
    "seeds": "is larger than chance over training runs",
    "users": "is larger than chance for these users",
    "open": "may be chance",
    "untested": "was not tested",
}
_BOTH_SURE: dict[Certainty, str] = {
    "seeds": "are larger than chance over training runs",
    "users": "are larger than chance for these users",
    "open": "may be chance",
    "untested": "were not tested",
}
_TESTED = {
    "higher": "more than chance for these users",
    "lower": "more than chance for these users",
    "better": "better beyond chance over training runs",
    "worse": "worse beyond chance over training runs",
    "unclear": "may be chance",
    "untested": "not tested",
}


def titles_of(comparison: Comparison) -> dict[str, str]:
    """What pages call the methods, by the name that the comparison has for them."""
    return {group.name: group.title for group in comparison.methods}


def headline(comparison: Comparison) -> Headline:
    """For somebody who decides: the winners, and whether chance may have made them."""
    leaders, titles = comparison.leaders, titles_of(comparison)
    if not leaders:
        return Headline(f"{joined(list(titles.values()))} side by side: no metric here says which is better.")
    if len(leaders) == 2 and leaders[0].method == leaders[1].method and all(one.lead for one in leaders):
        winner = titles[leaders[0].method]
        said = f"{winner} is best both {_field(leaders[0].metric)} and {_field(leaders[1].metric)}."
    else:
        said = ". ".join(_about_leader(one, titles) for one in leaders) + "."
    return Headline(said, _how_sure([one for one in leaders if one.lead is not None]))


def _about_leader(one: Leader, titles: Mapping[str, str]) -> str:
    field, value = _field(one.metric), in_words(one.metric)(one.value)
    if one.lead is None:
        return f"{field[0].upper()}{field[1:]} several methods share the best value ({one.metric} {value})"
    return f"{titles[one.method]} is best {field} ({one.metric} {value})"


def _how_sure(leaders: Sequence[Leader]) -> str:
    if not leaders:
        return ""
    kinds = {one.certainty for one in leaders}
    if len(kinds) == 1:
        which = "The lead over the next best method" if len(leaders) == 1 else "Both leads over the next best method"
        said = f"{which} {(_SURE if len(leaders) == 1 else _BOTH_SURE)[leaders[0].certainty]}"
    else:
        said = "; ".join(f"the lead {_field(one.metric)} {_SURE[one.certainty]}" for one in leaders)
        said = f"T{said[1:]}"
    return f"{said}{'; another training run may change this' if 'users' in kinds else ''}."


def sentences(comparison: Comparison) -> list[str]:
    """One per method: what it does to accuracy, to niche items, and whether that is more than chance."""
    titles = titles_of(comparison)
    return [_about(comparison, group.name, titles) for group in comparison.methods[1:]]


def told(comparison: Comparison) -> list[MetricKey]:
    """The two axes of the trade-off where they are shown, else the first two metrics."""
    axes = [comparison.trade_off.x, comparison.trade_off.y] if comparison.trade_off else []
    shown = [key for key in axes if key in comparison.metrics]
    return shown if len(shown) == len(axes) > 0 else list(comparison.metrics[:2])


def joined(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"


def _field(key: MetricKey) -> str:
    """
    >>> _field(MetricKey("recall", 20)), _field(MetricKey("recall", 20, "niche")), _field(MetricKey("gini", 20))
    ('in accuracy', 'on niche items', 'in gini@20')
    """
    if key.name in ("recall", "ndcg") and key.group is None:
        return "in accuracy"
    return "on niche items" if key.group == "niche" or key.name == "tail_share" else f"in {key}"


def _about(comparison: Comparison, method: str, titles: Mapping[str, str]) -> str:
    of_method = {one.metric: one for one in comparison.differences if one.method == method}
    found = [one for key in told(comparison) if (one := of_method.get(key)) is not None]
    return f"{titles[method]} against {titles[comparison.baseline.name]}: {'; '.join(map(_change, found))}."


def _change(one: Difference) -> str:
    """
    >>> one = Difference("ips", MetricKey("recall", 20), 0.2, 0.25, 0.05, 25.0, None, None, (0, 0), None, None)
    >>> _change(one)
    'recall@20 rises from 20% to 25% (+25.0%; not tested)'
    """
    written = in_words(one.metric)
    if one.difference == 0:
        return f"{one.metric} stays at {written(one.value)}"
    moved = f"{'rises' if one.difference > 0 else 'falls'} from {written(one.baseline_value)} to {written(one.value)}"
    relative = "" if change(one) == UNDEFINED else f"{change(one)}; "
    return f"{one.metric} {moved} ({relative}{_TESTED[one.verdict]})"
