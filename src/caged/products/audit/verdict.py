"""The verdict of an audit: three sentences whose wording follows from the thresholds below and from the intervals.

A difference is only called one if the interval leaves no room for less than the threshold; where there is no interval
the value itself decides, and the sentence says that there is none. `severity` grades the whole.
"""

from __future__ import annotations

from caged.data.popularity import ITEM_GROUPS
from caged.evaluation.metrics import MetricKey
from caged.page.definitions import meaning, part_of_items
from caged.page.html import Finding
from caged.page.numbers import percent
from caged.products.audit.charts import has_test, main_k, name_of, top_rows
from caged.products.audit.evidence import CAUTIONS, TEXTS
from caged.products.audit.ranges import lean_of_lists, range_of
from caged.products.audit.result import AuditResult
from caged.products.audit.severity import severity

NOTEWORTHY_LIFT = 0.10  # a list that is 10% more popular than the history
NOTEWORTHY_RATIO = 0.80  # a recall below four fifths of the other one
FEW_USERS = 30  # behind a value without an interval
_OPEN = "There are too few users to tell whether niche wishes are met as often as popular ones"
_NAMED = 3  # items that the first sentence names
_LEADS = (
    "The lists hold about as many popular items as {due}",
    "The lists lean towards popular items",
    "Popular items take much of the room of niche ones",
    "Popular items push niche ones aside",
    "Niche items are all but shut out",
)


def verdict(audit: AuditResult) -> list[Finding]:
    """Three sentences: what the lists do to items, to whom they do it, and what is known about its worth."""
    return [_about_items(audit), _about_users(audit), _about_worth(audit)]


def evidence_text(audit: AuditResult) -> str:
    return TEXTS[audit.evidence if has_test(audit) else "none"]


def _about_items(audit: AuditResult) -> Finding:
    k = main_k(audit)
    key = MetricKey("tail_share", k)
    measured = f"100% minus {key}. {meaning(key, audit.share)}"
    lean, graded = lean_of_lists(audit), severity(audit)
    if lean is None or graded is None:
        text = "too few items have training interactions, or there are no lists, to tell popular items from niche ones."
        return Finding("Nothing can be said about popular items", text, measured)
    due = "people wanted" if has_test(audit) else "the history"
    lead = f"The lists hold fewer popular items than {due}" if lean.side < 0 else _LEADS[graded.level].format(due=due)
    made_up = f"{percent(lean.history)} of the training interactions"
    made_up += f" and {percent(lean.wanted)} of what people wanted in the test" if has_test(audit) else ""
    shown = audit.exposure.shown[k]
    most = [name_of(audit, row) for row in top_rows(shown, shown > 0, _NAMED)]
    text = (
        f"the most popular {part_of_items(audit.share)} of the items fills {lean.places.written()} of the first {k} "
        f"places and accounts for {made_up}; shown most often: {', '.join(most)}."
    )
    return Finding(lead, text, measured)


def _about_users(audit: AuditResult) -> Finding:
    k = main_k(audit)
    lift = MetricKey("popularity_lift", k)
    niche, blockbuster = (range_of(audit, lift.of(group)) for group in ("niche-taste", "blockbuster"))
    measured = meaning(lift.of("niche-taste"), audit.share)
    if niche is None:
        text = "no list belongs to a user of this group with a training history."
        return Finding("Nothing can be said about people with niche taste", text, measured)
    side = niche.side(0.0, NOTEWORTHY_LIFT)
    lead = {
        1: "People with niche taste are shown more popular things than they chose themselves",
        -1: "People with niche taste are shown even less popular things than they chose themselves",
        0: "People with niche taste are shown things about as popular as their own",
    }[side]
    if side == 1 and blockbuster is not None and niche.low > blockbuster.high:
        lead = "People with niche taste are pushed furthest towards popular things"
    text = f"their lists are {niche.times()} as popular as their own history"
    if blockbuster is not None:
        text += f", those of people with blockbuster taste {blockbuster.times()}"
    return Finding(lead, text + _served(audit, k) + ".", measured)


def _served(audit: AuditResult, k: int) -> str:
    """The second half of the sentence about users: how much of what they wanted is found."""
    niche, blockbuster = (range_of(audit, MetricKey("recall", k, group)) for group in ("niche-taste", "blockbuster"))
    if niche is None or blockbuster is None:
        return ""
    if niche.high < blockbuster.low:
        judged = "the lists find less of what the first group wanted"
    elif blockbuster.high < niche.low:
        judged = "the lists find more of what the first group wanted"
    else:
        judged = "neither group is clearly better served"
    return f"; {judged}, {percent(niche.value)} against {percent(blockbuster.value)}"


def _about_worth(audit: AuditResult) -> Finding:
    k = main_k(audit)
    of_popular, of_niche = (MetricKey("recall", k, group) for group in ITEM_GROUPS)
    measured = f"{of_popular} and {of_niche}. {meaning(of_niche, audit.share)}"
    if not has_test(audit):
        text = "no test part was given, so this page describes the lists and cannot say how good they are."
        return Finding("We do not know whether people wanted these items", text, measured)
    popular, niche = range_of(audit, of_popular), range_of(audit, of_niche)
    if popular is None or niche is None:
        text = "the test part has no user with a relevant item in both groups, popular and niche."
        return Finding("Popular and niche wishes cannot be compared", text, measured)
    lead = "Popular and niche wishes are met about equally often"
    if min(audit.users[of_popular], audit.users[of_niche]) < FEW_USERS and not (popular.known and niche.known):
        lead = _OPEN
    elif niche.high < NOTEWORTHY_RATIO * popular.low:
        lead = "Niche wishes are met less often than popular ones"
    elif popular.high < NOTEWORTHY_RATIO * niche.low:
        lead = "Niche wishes are met more often than popular ones"
    elif popular.value and not NOTEWORTHY_RATIO <= niche.value / popular.value <= 1 / NOTEWORTHY_RATIO:
        lead = _OPEN
    text = (
        f"the lists find {popular.written()} of the popular items that people wanted in the test and "
        f"{niche.written()} of the niche ones; {CAUTIONS[audit.evidence]}."
    )
    return Finding(lead, text, measured)
