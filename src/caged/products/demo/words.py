"""The demo in words, for somebody who runs a shop. Every statement is computed from the numbers of the run."""

from __future__ import annotations

import math

from caged.models import display_name
from caged.products.demo.experiment import ADJUSTED, BASELINE, Demo, Difference, Judged, K

RECALL = f"recall@{K}"
_SUBJECT = "caged"
_REMEDIES = ("softmax", ADJUSTED)
# Two seeds of the same method differ by about 0.2 of 20 items; a smaller difference is not called one.
_NOTEWORTHY_ITEMS = 0.25
_NOTEWORTHY_SHARE = 0.02


def sentences(demo: Demo) -> list[str]:
    """For somebody who runs a shop: what people get before and after, the echo, the two judges, every method."""
    said = [_about_before_and_after(demo), _about_the_echo(demo), _about_the_judges(demo), _about_the_truth(demo)]
    said = [sentence for sentence in said if sentence]
    found = demo.difference(_SUBJECT)
    return said if found is None else [*said, _about_the_difference(found)]


def random_recall(demo: Demo) -> float:
    """Expected recall of K items drawn at random among those a person has not clicked."""
    counts = demo.market["counts"]
    return float(min(1.0, K / (counts["items"] - counts["train"] / counts["users"])))


def _about_before_and_after(demo: Demo) -> str:
    """What the remedies change for the people; nothing where none of them was tried."""
    base = _row(demo, BASELINE, -1)
    remedies = [row for row in demo.rows if row.method in _REMEDIES]
    if base.method != BASELINE or not remedies:
        return ""
    best = max(remedies, key=lambda row: row.true_preference)
    before, after = K * base.true_preference, K * best.true_preference
    clicks = _change_of_clicks(best, base)
    if after - before < _NOTEWORTHY_ITEMS:
        return (
            f"Before and after: people like {before:.1f} of the {K} items that {display_name(BASELINE)} shows them, "
            f"and no remedy here changes that much ({display_name(best.method)}: {after:.1f}, {clicks})."
        )
    return (
        f"Before and after: of the {K} items on their list, people truly like {before:.1f} with "
        f"{display_name(BASELINE)} and {after:.1f} with {display_name(best.method)}, which finds {clicks}."
    )


def _change_of_clicks(row: Judged, base: Judged) -> str:
    change = row.natural[RECALL] / base.natural[RECALL] - 1 if base.natural[RECALL] else math.nan
    if not abs(change) >= _NOTEWORTHY_SHARE:
        return "about as many of the shop's later clicks"
    return f"{abs(change):.0%} {'more' if change > 0 else 'fewer'} of the shop's later clicks"


def _about_the_echo(demo: Demo) -> str:
    share = demo.market["top_fifth_share"]
    rounds = demo.market["parameters"]["rounds"]
    numbers = (
        f"after {rounds} rounds the most clicked fifth of the items has {share['log']:.0%} of all clicks, while the "
        f"best liked fifth would get {share['true_appeal']:.0%} if everybody saw everything"
    )
    if share["log"] > share["true_appeal"] + _NOTEWORTHY_SHARE:
        return f"This shop shows what sells and sells what it shows: {numbers}."
    return f"In this shop clicks are hardly more concentrated than people's taste: {numbers}."


def _about_the_judges(demo: Demo) -> str:
    row = _row(demo, "mostpop", 0)
    chance = random_recall(demo)
    natural, oracle = row.natural[RECALL] / chance, row.oracle[RECALL] / chance
    what = "showing everybody the same bestsellers" if row.method == "mostpop" else display_name(row.method)
    return (
        f"Judged by the shop's own later clicks, {what} finds {_compared(natural)}; judged by what people truly like, "
        f"it finds {_compared(oracle)}."
    )


def _compared(ratio: float) -> str:
    """
    >>> _compared(11.7), _compared(1.22), _compared(1.0), _compared(0.5)
    ('12 times as much as chance', '1.2 times as much as chance', 'no more than chance', 'less than chance')
    """
    if not math.isfinite(ratio):
        return "nothing that can be measured"
    if ratio < 1.05:
        return "less than chance" if ratio < 0.95 else "no more than chance"
    return f"{ratio:.0f} times as much as chance" if ratio >= 9.5 else f"{ratio:.1f} times as much as chance"


def _about_the_truth(demo: Demo) -> str:
    base = _row(demo, "lightgcn", -1)
    possible = K * demo.best_true_preference
    popular = [row for row in demo.rows if row.method == "mostpop" != base.method]
    aside = f" (bestsellers: {K * popular[0].true_preference:.1f})" if popular else ""
    start = (
        f"Of {K} items that {display_name(base.method)} recommends, people truly like {K * base.true_preference:.1f} "
        f"on average{aside}, where {possible:.1f} would be possible"
    )
    others = [row for row in demo.rows if row.method not in ("mostpop", base.method)]
    return "; ".join([start, *(_against(row, base) for row in others)]) + "."


def _against(row: Judged, base: Judged) -> str:
    liked = K * (row.true_preference - base.true_preference)
    if abs(liked) < _NOTEWORTHY_ITEMS:
        truth = f"{display_name(row.method)} changes this little ({K * row.true_preference:.1f})"
    else:
        change = "raises" if liked > 0 else "lowers"
        truth = f"{display_name(row.method)} {change} this to {K * row.true_preference:.1f}"
    return f"{truth} and finds {_change_of_clicks(row, base)}"


def _about_the_difference(found: Difference) -> str:
    name, base = display_name(found.method), display_name(BASELINE)
    if found.low is None or found.high is None:
        return f"{name}'s oracle recall@{K} differs from that of {base} by {points(found.mean)}, without an interval."
    if found.low > 0:
        verdict = f"{name} finds more of what people truly like than {base}"
    elif found.high < 0:
        verdict = f"{name} finds less of what people truly like than {base}"
    else:
        verdict = f"{name} does neither clearly better nor worse than {base} by what people truly like"
    between = f"95% interval over people {points(found.low)} to {points(found.high)}"
    return f"{verdict}: oracle recall@{K} differs by {points(found.mean)} percentage points ({between})."


def points(difference: float) -> str:
    return f"{100 * difference:+.2f}"


def _row(demo: Demo, method: str, otherwise: int) -> Judged:
    return next((row for row in demo.rows if row.method == method), demo.rows[otherwise])
