"""What every metric means, in one or two plain sentences per key; the formulas are those of `evaluation`."""

from __future__ import annotations

from caged.evaluation.keys import METRICS, MetricKey

POPULAR = "the most popular fifth of the items with training interactions"
NICHE = "all items but the most popular fifth; items without training interactions included"

_MEANINGS = {
    "recall": "Share of a user's relevant items that stand among the first {k} of the list; the average user.",
    "precision": "Share of the first {k} places that hold a relevant item; the average user. Divides by {k} even where "
    "a list is shorter.",
    "hit": "Share of users with at least one relevant item among the first {k}.",
    "mrr": "1 / place of the first relevant item, 0 if none is among the first {k}; the average user.",
    "map": "Precision at the place of each relevant item among the first {k}, added up and divided by the smaller of "
    "{k} and the number of relevant items; the average user.",
    "ndcg": "Relevant items among the first {k}, each weighted by 1/log2(place + 1), over the best sum that is "
    "possible; the average user.",
    "ndcg_hits100": "As NDCG, but compared with the best order of the hits in the first 100 places only. It rewards "
    "lists that find little and exists to compare with published tables.",
    "arp": "Average number of training users of the first {k} items; the average user.",
    "popularity_lift": "How much more popular the first {k} items are than the user's own training items: "
    "(list average - own average) / own average. 0 is as popular as the history, 1 is twice as popular; the mean of "
    "the users' ratios.",
    "delta_gap": "As the popularity lift, but the averages are taken over the users first and then compared: the ratio "
    "of means (delta GAP). It can differ from the popularity lift in size and in sign.",
    "tail_share": "Share of the first {k} places that go to niche items; the average user.",
    "aclt": "Number of niche items among the first {k}; the average user.",
    "novelty": "Average of -log2(training users of the item / all training users) over the first {k}, in bits: higher "
    "is less known; the average user.",
    "upd": "Distance between a user's history and list in the shares of head, middle and tail items "
    "(Jensen-Shannon divergence): 0 is the same mix, 1 nothing in common; the average user.",
    "pru": "Among a user's relevant items, whether popular ones stand higher (rank correlation): 0 is no preference, 1 "
    "always the popular first; the average user.",
    "coverage": "Share of the items that stand in at least one list of {k}.",
    "gini": "How unequally the places of all lists of {k} are spread over the items: 0 all items alike, near 1 a few "
    "items take everything.",
    "entropy": "How evenly the places of all lists of {k} are spread over the items: 1 all alike, 0 a single item.",
    "exposure_kl": "How far the places of the lists are from the training interactions, by tenth of the items "
    "(Kullback-Leibler divergence, bits): 0 is the same spread. It grows in both directions.",
    "exposure_rate": "Of all pairs of a listed user and an item of the group that is new to the user, the share that "
    "stands in the lists of {k}.",
    "pop_rsp": "Statistical parity: how far the exposure rates of popular and niche items are apart, "
    "|a - b| / (a + b). 0 is equal; it hides which one is ahead.",
    "pooled_recall": "Found relevant items of the group over all its relevant items, added up over users first.",
    "pop_reo": "Equal opportunity: how far the pooled recalls of popular and niche items are apart, |a - b| / (a + b). "
    "0 is equal; it hides which one is ahead.",
}
_GROUPS = {
    "popular": f"Only popular items count: {POPULAR}.",
    "niche": f"Only niche items count: {NICHE}.",
    "niche-taste": "Only users with niche taste: the fifth whose history holds the smallest share of popular items.",
    "diverse": "Only users in between: neither the fifth with the most nor the fifth with the least popular history.",
    "blockbuster": "Only blockbuster users: the fifth whose history holds the largest share of popular items.",
}
_BETTER = {"up": "Higher is better.", "down": "Lower is better.", "zero": "Best at 0.", "none": ""}
INTERVAL = "95% interval over the choice of users: where the value lies for other users like these. It says nothing "
INTERVAL += "about another training run."


def meaning(key: str) -> str:
    """
    >>> meaning("hit@5")
    'Share of users with at least one relevant item among the first 5. Higher is better.'
    """
    parsed = MetricKey.parse(key)
    said = [_MEANINGS[parsed.name].format(k=parsed.k)]
    said += [_GROUPS[parsed.group]] if parsed.group else []
    return " ".join([*said, _BETTER[METRICS[parsed.name].direction]]).rstrip()
