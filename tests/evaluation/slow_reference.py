"""The metrics once more, literally from their definitions: plain Python, dictionaries and loops, no shared code.

`train`, `valid`, `relevant` map a user row to a set of item rows, `lists` a user row to its items, best first.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import isnan, log2, nan, sqrt

PAIRS = dict[int, set[int]]
ACCURACY = (
    "recall",
    "precision",
    "f1",
    "r_precision",
    "hit",
    "mrr",
    "map",
    "rbp",
    "serendipity",
    "ndcg",
    "ndcg_hits100",
)


class Slow:
    def __init__(self, item_count, train: PAIRS, valid: PAIRS, relevant: PAIRS, lists, missing="zero"):
        self.item_count = item_count
        self.train = {u: s for u, s in train.items() if s}
        self.valid = valid
        self.relevant = {u: s for u, s in relevant.items() if s}
        self.lists = {u: list(items) for u, items in lists.items() if len(items)}
        if missing == "skip":
            self.relevant = {u: s for u, s in self.relevant.items() if u in self.lists}
        self.users = sorted(set(self.lists) | set(self.relevant))
        self.degree = [sum(i in profile for profile in self.train.values()) for i in range(item_count)]
        self._item_groups()
        self._user_groups()

    # ---------------------------------------------------------------- groups

    def _item_groups(self):
        self.total = sum(self.degree)
        order = sorted((i for i in range(self.item_count) if self.degree[i]), key=lambda i: (-self.degree[i], i))
        self.popular = set(order[: len(order) // 5])
        self.niche = set(range(self.item_count)) - self.popular
        self.section = ["tail"] * self.item_count
        self.bucket = [9] * self.item_count
        for p, i in enumerate(order):
            before = sum(self.degree[j] for j in order[:p])
            after = sum(self.degree[j] for j in order[p + 1 :])
            if Fraction(before) < Fraction(self.total, 5):
                self.section[i] = "head"
            elif Fraction(after) < Fraction(self.total, 5):
                self.section[i] = "tail"
            else:
                self.section[i] = "middle"
            self.bucket[i] = 10 * p // len(order)

    def _user_groups(self):
        def share(u):
            return Fraction(len(self.train[u] & self.popular), len(self.train[u]))

        order = sorted(self.train, key=lambda u: (share(u), u))
        fifth = len(order) // 5
        self.user_group = dict.fromkeys(order, "diverse")
        self.user_group.update(dict.fromkeys(order[:fifth], "niche-taste"))
        self.user_group.update(dict.fromkeys(order[len(order) - fifth :], "blockbuster"))

    def members(self, group):
        return {None: self.popular | self.niche, "popular": self.popular, "niche": self.niche}[group]

    # ---------------------------------------------------------------- per user

    def top(self, u, k):
        return self.lists.get(u, [])[:k]

    def accuracy(self, name, u, k, group):
        wanted = self.relevant.get(u, set()) & self.members(group)
        if not wanted:
            return nan
        ranks = [r for r, i in enumerate(self.top(u, k), 1) if i in wanted]
        dcg = sum(1 / log2(r + 1) for r in ranks)

        def ideal(count):
            return sum(1 / log2(r + 1) for r in range(1, min(k, count) + 1))

        found = sum(i in wanted for i in self.top(u, 100))
        return {
            "recall": len(ranks) / len(wanted),
            "precision": len(ranks) / k,
            "f1": harmonic_mean(len(ranks) / k, len(ranks) / len(wanted)),
            "r_precision": sum(r <= len(wanted) for r in ranks) / len(wanted),
            "rbp": 0.2 * sum(0.8 ** (r - 1) for r in ranks),
            "serendipity": len(wanted & set(self.top(u, k)) - self.bestsellers(u, k)) / k,
            "hit": float(bool(ranks)),
            "mrr": 1 / ranks[0] if ranks else 0.0,
            "map": sum(sum(q <= r for q in ranks) / r for r in ranks) / min(k, len(wanted)),
            "ndcg": dcg / ideal(len(wanted)),
            "ndcg_hits100": dcg / ideal(found) if found else 0.0,
        }[name]

    def bestsellers(self, u, k):
        """What `mostpop` would show the user, as far as anybody used it."""
        seen = self.train.get(u, set()) | self.valid.get(u, set())
        new = (i for i in range(self.item_count) if i not in seen and self.degree[i])
        return set(sorted(new, key=lambda i: (-self.degree[i], i))[:k])

    def of_list(self, name, u, k):
        top = self.top(u, k)
        if not top:
            return nan
        a, b = mean([self.degree[i] for i in top]), self.profile_popularity(u)
        niche = sum(i in self.niche for i in top)
        bits = [-log2(max(self.degree[i], 1) / len(self.train)) if self.train else nan for i in top]
        return {
            "arp": a,
            "popularity_lift": (a - b) / b,
            "tail_share": niche / len(top),
            "aclt": float(niche),
            "novelty": mean(bits),
            "upd": self.upd(u, top),
            "pru": self.pru(u, k),
        }[name]

    def profile_popularity(self, u):
        return mean([self.degree[i] for i in self.train.get(u, ())])

    def upd(self, u, top):
        if u not in self.train:
            return nan

        def shares(items):
            return [sum(self.section[i] == s for i in items) / len(items) for s in ("head", "middle", "tail")]

        p, q = shares(self.train[u]), shares(top)
        m = [(a + b) / 2 for a, b in zip(p, q, strict=True)]

        def kl(x):
            return sum(a * log2(a / b) for a, b in zip(x, m, strict=True) if a)

        return kl(p) / 2 + kl(q) / 2

    def pru(self, u, k):
        wanted = sorted(self.relevant.get(u, ()))
        top = self.top(u, k)
        degrees = [self.degree[i] for i in wanted]
        positions = [top.index(i) + 1 if i in top else k + 1 for i in wanted]
        if len(set(degrees)) < 2 or len(set(positions)) < 2:
            return nan
        return -pearson(average_ranks(degrees), average_ranks(positions))

    # ---------------------------------------------------------------- everything

    def exposure(self, k):
        return [sum(i in self.top(u, k) for u in self.users) for i in range(self.item_count)]

    def delta_gap(self, k, group):
        users = [u for u in self.lists if u in self.train and group in (None, self.user_group[u])]
        a = mean([self.of_list("arp", u, k) for u in users])
        b = mean([self.profile_popularity(u) for u in users])
        return (a - b) / b

    def catalogue(self, name, k, group):
        if name in ("exposure_rate", "pooled_recall"):
            return getattr(self, name)(k, group)
        if name in ("pop_rsp", "pop_reo"):
            rate = self.exposure_rate if name == "pop_rsp" else self.pooled_recall
            return deviation_over_mean(rate(k, "popular"), rate(k, "niche"))
        if name == "personalisation":
            return self.personalisation(k)
        x = self.discounted_exposure(k) if name == "exposure_gini" else self.exposure(k)
        n = self.item_count
        total, group_items = sum(x), self.members(group)
        if total == 0:
            return nan
        return {
            "coverage": sum(x[i] > 0 for i in group_items) / len(group_items) if group_items else nan,
            "gini": concentration(x),
            "exposure_gini": concentration(x),
            "entropy": -sum(v / total * log2(v / total) for v in x if v) / log2(n) if n > 1 else nan,
            "exposure_kl": self.exposure_kl(x),
        }[name]

    def discounted_exposure(self, k):
        amounts = [0.0] * self.item_count
        for u in self.users:
            for r, i in enumerate(self.top(u, k), 1):
                amounts[i] += 1 / log2(r + 1)
        return amounts

    def personalisation(self, k):
        """Over all pairs of users with a list, one by one."""
        tops = [set(self.top(u, k)) for u in self.users if self.top(u, k)]
        return 1 - mean([len(a & b) / sqrt(len(a) * len(b)) for a, b in combinations(tops, 2)])

    def exposure_kl(self, x):
        value = 0.0
        for bucket in range(10):
            here = [i for i in range(self.item_count) if self.bucket[i] == bucket]
            p = sum(x[i] for i in here) / sum(x)
            q = sum(self.degree[i] for i in here) / self.total if self.total else 0.0
            if p and not q:
                return nan
            value += p * log2(p / q) if p else 0.0
        return value

    def exposure_rate(self, k, group):
        listed = pairs = 0
        for u in self.lists:
            eligible = self.members(group) - self.train.get(u, set()) - self.valid.get(u, set())
            pairs += len(eligible)
            listed += len(eligible & set(self.top(u, k)))
        return listed / pairs if pairs else nan

    def pooled_recall(self, k, group):
        hits = sum(len(s & self.members(group) & set(self.top(u, k))) for u, s in self.relevant.items())
        count = sum(len(s & self.members(group)) for s in self.relevant.values())
        return hits / count if count else nan

    # ---------------------------------------------------------------- by key

    def value(self, key: str):
        """(aggregate, per-user values in row order or None) of a flat key."""
        name, _, rest = key.partition("@")
        cut, _, group = rest.partition("/")
        k, group = int(cut), group or None
        if name == "delta_gap":
            return self.delta_gap(k, group), None
        accuracy = name in ACCURACY
        if not accuracy and name not in ("arp", "popularity_lift", "tail_share", "aclt", "novelty", "upd", "pru"):
            return self.catalogue(name, k, group), None
        item_group = group if group in ("popular", "niche") else None
        if accuracy:
            values = [self.accuracy(name, u, k, item_group) for u in self.users]
        else:
            values = [self.of_list(name, u, k) for u in self.users]
        if group != item_group:
            chosen = [v for u, v in zip(self.users, values, strict=True) if self.user_group.get(u) == group]
            return mean([v for v in chosen if not isnan(v)]), None
        return mean([v for v in values if not isnan(v)]), values


def concentration(x):
    n = len(x)
    return sum((2 * j - n - 1) * value for j, value in enumerate(sorted(x), 1)) / (n * sum(x))


def harmonic_mean(a, b):
    return 2 * a * b / (a + b) if a + b else 0.0


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else nan


def deviation_over_mean(a, b):
    average = (a + b) / 2
    if isnan(average) or average == 0:
        return nan
    return sqrt(((a - average) ** 2 + (b - average) ** 2) / 2) / average


def average_ranks(values):
    return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]


def pearson(a, b):
    ma, mb = mean(a), mean(b)
    covariance = sum((x - ma) * (y - mb) for x, y in zip(a, b, strict=True))
    return covariance / sqrt(sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b))
