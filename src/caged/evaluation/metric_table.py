"""The table of metrics: one row for each, with everything there is to know about it.

What computes, resamples, prints, compares, gates or explains a metric reads its row and knows none by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from caged.data.popularity import ITEM_GROUPS, USER_GROUPS, gini
from caged.evaluation import bias, exposure, ranking
from caged.evaluation.formulas import (
    DEVIATIONS,
    DISCOUNTED_PLACES,
    DIVERGENCE,
    GAP,
    RATES_APART,
    RATIO,
    RECALLS_APART,
    SPREAD,
    UNIT_LISTS,
    Mean,
    OfItems,
    OfSums,
    accuracy,
    found_and_wanted,
    list_mean,
    mean_of,
    own_value,
    places_by_bucket,
    popularity_of_list_and_profile,
    shown_and_could_be,
)
from caged.evaluation.group_names import USER, GroupName, GroupNames

Direction = Literal["up", "down", "zero", "none"]
Unit = Literal["share", "change", "index", "number"]
_WHOLE: tuple[None] = (None,)
_BY_ITEMS, _BY_USERS = (None, *ITEM_GROUPS), (None, *USER_GROUPS)
_BY_BOTH = (*_BY_ITEMS, *USER_GROUPS)


@dataclass(frozen=True)
class Metric:
    """One row.

    `direction`: `up` and `down` say which way is better, `zero` that zero is best, `none` that it only describes.
    `unit`: a `share`, a relative `change`, an `index` between bounds, or a `number` with a scale of its own.
    """

    name: str
    direction: Direction
    unit: Unit
    groups: tuple[str | None, ...]  # it is reported for; None is everything
    formula: OfSums | OfItems
    meaning: str  # {k} stands for the cut-off
    needs_test: bool = False
    published: bool = False  # only for comparison with published tables; misleads elsewhere
    depth: int | None = None  # places that it reads whatever k is, and the largest k
    of_catalogue: bool = False  # counts items that nobody has used or listed
    of_groups: bool = False  # knows popular and niche items also where it is for everything
    of_family: bool = False  # of all groups of a family of items that somebody chose
    of_shown: bool = False  # rests on what was shown at random and not liked, beside what was
    has_k: bool = True  # whether it has a cut-off
    of_vectors: bool = False  # for everything only where somebody gave the items' vectors

    @property
    def counts_catalogue(self) -> bool:
        return self.of_catalogue or isinstance(self.formula, OfItems)

    @property
    def fixed_groups(self) -> tuple[str | None, ...]:
        """Of which a key may speak whatever families there are."""
        return (None, *self.groups) if self.of_vectors else self.groups

    def reported_groups(self, names: GroupNames) -> list[str | None]:
        """All that it is reported for where somebody chose these."""
        fixed = self.fixed_groups if names.vectors else self.groups
        return [*fixed, *self.chosen_groups(names)]

    def chosen_groups(self, names: GroupNames) -> list[str]:
        """Those of the chosen groups, or families, that it is reported for."""
        of_items = names.of_items if ITEM_GROUPS[0] in self.groups else []
        of_users = names.of_users if USER_GROUPS[0] in self.groups else []
        return [*of_items, *of_users, *(names.items if self.of_family else ())]

    def exists_for(self, chosen: GroupName) -> bool:
        if chosen.group is None:
            return self.of_family and bool(chosen.family) and not chosen.of_users
        wanted = USER_GROUPS[0] if chosen.of_users else ITEM_GROUPS[0]
        return wanted in self.groups and bool(chosen.family and chosen.group)

    def chosen_forms(self, k: int) -> list[str]:
        """How its keys for chosen groups are written."""
        forms = ["FAMILY"] if self.of_family else []
        forms += ["FAMILY=GROUP"] if ITEM_GROUPS[0] in self.groups else []
        forms += [f"{USER}FAMILY=GROUP"] if USER_GROUPS[0] in self.groups else []
        return [f"{self.name}{f'@{k}' if k else ''}/{form}" for form in forms]

    def exists_at(self, k: int) -> bool:
        return self.depth is None or k <= self.depth


_ROWS = (
    Metric(
        name="recall",
        direction="up",
        unit="share",
        groups=_BY_BOTH,
        formula=accuracy(ranking.recall),
        meaning="Share of a user's relevant items that are among the first {k} of the list; the average user.",
        needs_test=True,
    ),
    Metric(
        name="precision",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=accuracy(ranking.precision),
        meaning="Share of the first {k} places that hold a relevant item; the average user. Divides by {k} even "
        "if a list is shorter.",
        needs_test=True,
    ),
    Metric(
        name="f1",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=accuracy(ranking.f1),
        meaning="Harmonic mean of a user's precision and recall at {k}, 0 without a hit; the average user.",
        needs_test=True,
    ),
    Metric(
        name="r_precision",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=accuracy(ranking.r_precision),
        meaning="Share of a user's R relevant items that are in the first R places, reading at most {k}; "
        "the average user. 1 is a list that starts with everything relevant.",
        needs_test=True,
    ),
    Metric(
        name="hit",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=accuracy(ranking.hit),
        meaning="Share of users with at least one relevant item among the first {k}.",
        needs_test=True,
    ),
    Metric(
        name="mrr",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=accuracy(ranking.mrr),
        meaning="1 / place of the first relevant item, 0 if none is among the first {k}; the average user.",
        needs_test=True,
    ),
    Metric(
        name="map",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=accuracy(ranking.average_precision),
        meaning="Precision at the place of each relevant item among the first {k}, summed and divided by {k} or by "
        "the number of relevant items, whichever is smaller; the average user.",
        needs_test=True,
    ),
    Metric(
        name="rbp",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=accuracy(ranking.rank_biased_precision),
        meaning="How much of what a reader sees is relevant, if the reader goes on to the next item with probability "
        f"{ranking.PERSISTENCE}, among the first {{k}} (rank-biased precision without its residual); the average user.",
        needs_test=True,
    ),
    Metric(
        name="ndcg",
        direction="up",
        unit="share",
        groups=_BY_BOTH,
        formula=accuracy(ranking.ndcg),
        meaning="Relevant items among the first {k}, each weighted by 1/log2(place + 1), divided by the best possible "
        "sum; the average user.",
        needs_test=True,
    ),
    Metric(
        name="ndcg_hits100",
        direction="up",
        unit="share",
        groups=_BY_ITEMS,
        formula=accuracy(ranking.ndcg_hits100),
        meaning="Like NDCG, but compared only with the best order of the hits in the first 100 places. It rewards "
        "lists that find little; use it only to compare with published tables.",
        needs_test=True,
        published=True,
        depth=ranking.IDEAL_DEPTH,
    ),
    Metric(
        name="arp",
        direction="none",
        unit="number",
        groups=_WHOLE,
        formula=mean_of(lambda lists, k: lists.popularity(k)),
        meaning="Average number of training users of the first {k} items; the average user.",
    ),
    Metric(
        name="popularity_lift",
        direction="zero",
        unit="change",
        groups=_BY_USERS,
        formula=mean_of(lambda lists, k: bias.popularity_lift(lists.popularity(k), lists.profile_popularity)),
        meaning="How much more popular the first {k} items are than the user's own training items: (list average - "
        "own average) / own average. 0 is as popular as the history, 1 is twice as popular; the mean of "
        "all users' ratios.",
    ),
    Metric(
        name="delta_gap",
        direction="zero",
        unit="change",
        groups=_BY_USERS,
        formula=OfSums(popularity_of_list_and_profile, *GAP),
        meaning="Like the popularity lift, but averaged over the users first and then compared: the ratio of "
        "means (delta GAP). Its size and even its sign can differ from the popularity lift.",
    ),
    Metric(
        name="tail_share",
        direction="up",
        unit="share",
        groups=_BY_USERS,
        formula=mean_of(lambda lists, k: bias.tail_share(lists.items, lists.groups.niche, k)),
        meaning="Share of the first {k} places that go to niche items; the average user.",
        of_groups=True,
    ),
    Metric(
        name="aclt",
        direction="up",
        unit="number",
        groups=_WHOLE,
        formula=mean_of(lambda lists, k: bias.aclt(lists.items, lists.groups.niche, k)),
        meaning="Number of niche items among the first {k}; the average user.",
        of_groups=True,
    ),
    Metric(
        name="novelty",
        direction="up",
        unit="number",
        groups=_WHOLE,
        formula=mean_of(
            lambda lists, k: bias.novelty(lists.items, lists.groups.degrees, lists.reference.trained_users, k)
        ),
        meaning="Average of -log2(training users of the item / all training users) over the first {k}, in bits: "
        "higher means less known; the average user.",
    ),
    Metric(
        name="upd",
        direction="down",
        unit="index",
        groups=_BY_USERS,
        formula=mean_of(lambda lists, k: bias.upd(lists.profile_sections, lists.sections(k))),
        meaning="Distance between a user's history and list in the shares of head, middle and tail items "
        "(Jensen-Shannon divergence): 0 is the same mix, 1 nothing in common; the average user.",
    ),
    Metric(
        name="pru",
        direction="zero",
        unit="index",
        groups=_WHOLE,
        formula=mean_of(lambda lists, k: bias.pru(*lists.relevant_pairs, len(lists.users), k)),
        meaning="Among a user's relevant items, whether popular ones rank higher (rank correlation): 0 is no "
        "preference, 1 always puts popular ones first; the average user.",
        needs_test=True,
    ),
    Metric(
        name="serendipity",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=mean_of(lambda lists, k: ranking.serendipity(lists.unexpected_hits(k), lists.relevant[None], k)),
        meaning="Share of the first {k} places that hold a relevant item outside the {k} most popular items that "
        "are new to the user: precision without what a plain list of bestsellers finds; the average user.",
        needs_test=True,
    ),
    Metric(
        name="coverage",
        direction="up",
        unit="share",
        groups=_BY_ITEMS,
        formula=OfItems(lambda shown: exposure.coverage(shown.amounts, shown.members)),
        meaning="Share of the items that are in at least one list of {k}.",
    ),
    Metric(
        name="gini",
        direction="down",
        unit="index",
        groups=_WHOLE,
        formula=OfItems(lambda shown: gini(shown.amounts)),
        meaning="How unequally the places of all lists of {k} are spread over the items: 0 means all items alike; "
        "near 1, a few items take everything.",
    ),
    Metric(
        name="exposure_gini",
        direction="down",
        unit="index",
        groups=_WHOLE,
        formula=OfItems(lambda shown: gini(shown.amounts), DISCOUNTED_PLACES),
        meaning="Like the Gini, but a place counts 1/log2(place + 1), because people see the top of a list more: 0 "
        "means all items alike; near 1, a few items take all the attention.",
    ),
    Metric(
        name="entropy",
        direction="up",
        unit="index",
        groups=_WHOLE,
        formula=OfItems(lambda shown: exposure.entropy(shown.amounts)),
        meaning="How evenly the places of all lists of {k} are spread over the items: 1 means all alike, 0 "
        "a single item.",
    ),
    Metric(
        name="personalisation",
        direction="up",
        unit="index",
        groups=_WHOLE,
        formula=OfItems(lambda shown: exposure.personalisation(shown.amounts, shown.lists), UNIT_LISTS),
        meaning="How different the lists of {k} of two users are, on average over all pairs: 0 means everybody gets "
        "the same items, 1 that no two lists share one.",
    ),
    Metric(
        name="exposure_kl",
        direction="none",
        unit="number",
        groups=_WHOLE,
        formula=OfSums(places_by_bucket, *DIVERGENCE, reads_mass=True, biased=True),
        meaning="How far the places of the lists are from the training interactions, by tenth of the "
        "trained items (Kullback-Leibler divergence, bits): 0 is the same spread. It grows in both directions.",
    ),
    Metric(
        name="exposure_rate",
        direction="none",
        unit="share",
        groups=ITEM_GROUPS,
        formula=OfSums(shown_and_could_be, *RATIO),
        meaning="Of all pairs of a user with a list and an item of the group that is new to the user, the share that "
        "is in the lists of {k}.",
        of_catalogue=True,
    ),
    Metric(
        name="pop_rsp",
        direction="down",
        unit="index",
        groups=_WHOLE,
        formula=RATES_APART,
        meaning="Statistical parity: how far apart the exposure rates of popular and niche items are, |a - b| / (a "
        "+ b). 0 is equal; it hides which one is ahead.",
        of_catalogue=True,
        of_groups=True,
    ),
    Metric(
        name="pooled_recall",
        direction="up",
        unit="share",
        groups=ITEM_GROUPS,
        formula=OfSums(found_and_wanted, *RATIO),
        meaning="Relevant items of the group that were found, divided by all its relevant items, both summed over "
        "users.",
        needs_test=True,
    ),
    Metric(
        name="pop_reo",
        direction="down",
        unit="index",
        groups=_WHOLE,
        formula=RECALLS_APART,
        meaning="Equal opportunity: how far apart the pooled recalls of popular and niche items are, |a - b| / (a "
        "+ b). 0 is equal; it hides which one is ahead.",
        needs_test=True,
        of_groups=True,
    ),
    Metric(
        name="rsp",
        direction="down",
        unit="index",
        groups=(),
        formula=OfSums(shown_and_could_be, *SPREAD, vector=DEVIATIONS, of_two=RATES_APART),
        meaning="Statistical parity: how far apart the exposure rates of all groups of a family are, their standard "
        "deviation over their mean. 0 is equal; it hides which one is ahead.",
        of_catalogue=True,
        of_family=True,
    ),
    Metric(
        name="reo",
        direction="down",
        unit="index",
        groups=(),
        formula=OfSums(found_and_wanted, *SPREAD, vector=DEVIATIONS, of_two=RECALLS_APART),
        meaning="Equal opportunity: how far apart the pooled recalls of all groups of a family are, their standard "
        "deviation over their mean. 0 is equal; it hides which one is ahead.",
        needs_test=True,
        of_family=True,
    ),
    Metric(
        name="intra_list_diversity",
        direction="up",
        unit="index",
        groups=(),
        formula=list_mean(lambda lists, k, family: lists.diversity(k, family)),
        meaning="How different the first {k} items of a list are, on average over all pairs (1 - cosine): in their "
        "vectors or, of a family, in their groups. 0 is all alike, 1 nothing in common; the average user.",
        of_family=True,
        of_vectors=True,
    ),
    Metric(
        name="miscalibration",
        direction="down",
        unit="index",
        groups=(),
        formula=list_mean(lambda lists, k, family: lists.miscalibration(k, str(family))),
        meaning="Distance between a user's history and the first {k} items in the shares of the groups of the family "
        "(Jensen-Shannon divergence): 0 is the same mix, 1 nothing in common; the average user.",
        of_family=True,
    ),
    Metric(
        name="shown_auc",
        direction="up",
        unit="index",
        groups=_BY_ITEMS,
        formula=Mean(own_value, *RATIO, of_user=lambda lists, _, group: lists.shown_auc(group)),
        meaning="Among items shown to a user at random, how often a liked one is ranked above one that was not liked; "
        "the average user. 0.5 is chance. Of a group of items, its liked ones against all that were not liked.",
        needs_test=True,
        of_shown=True,
        has_k=False,
    ),
    Metric(
        name="shown_auc_within",
        direction="up",
        unit="index",
        groups=_WHOLE,
        formula=mean_of(lambda lists, _: lists.shown.auc_within(lists.groups.bucket[lists.shown.items])),
        meaning="The same among items of one tenth of training popularity: what is left when popularity cannot help. "
        "0.5 is chance; what mere popularity reaches is the floor.",
        needs_test=True,
        of_shown=True,
        has_k=False,
    ),
    Metric(
        name="shown_ndcg",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=mean_of(lambda lists, k: lists.shown.ndcg(k)),
        meaning="NDCG at {k} of the items shown to a user at random, ranked among themselves: liked ones first is 1; "
        "the average user.",
        needs_test=True,
        of_shown=True,
    ),
    Metric(
        name="shown_precision",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=mean_of(lambda lists, k: lists.shown.precision(k)),
        meaning="Of the items shown to a user at random, the share of liked ones among the first {k}, or among all "
        "where fewer were shown; the average user.",
        needs_test=True,
        of_shown=True,
    ),
)
METRICS = {metric.name: metric for metric in _ROWS}
