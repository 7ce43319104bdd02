"""Every metric but coverage, gini and entropy as a function of sums over users.

That is what makes a metric easy to compute again for other users: the bootstrap adds the parts of the users it draws, a
pass over millions of users adds blocks. `Estimate.parts` are the m columns of what each user adds, `value` takes their
sums, (..., m), to values, and `gradient` linearises `value`. A mean over the users that have a value is the ratio of
two sums, of the values and of ones.

Every `value` stays the same if all sums are doubled. By Euler's theorem the linearised contributions of the users,
parts @ gradient, then add up to zero, so that their squares give the variance without centring.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import ITEM_GROUPS, USER_GROUPS
from caged.evaluation.keys import METRICS, MetricKey

WITHOUT_INTERVAL = ("coverage", "gini", "entropy")  # not functions of sums over users


class UserParts(Protocol):
    """What a report, or a block of one, has per user."""

    @property
    def user_group(self) -> Array: ...
    def per_user_of(self, key: MetricKey) -> Array: ...
    def sum_of(self, name: str) -> Array: ...


@dataclass(frozen=True)
class Estimate:
    parts: Callable[[UserParts], list[Array]]  # columns, or tables of several; the last is 1 for users behind the value
    value: Callable[[Array], Array]
    gradient: Callable[[Array], Array]


def estimate_of(key: MetricKey, bucket_mass: Array) -> Estimate:
    """How a key follows from sums over users; `bucket_mass` are the training interactions per popularity bucket."""
    if METRICS[key.name].kind != "catalogue":
        return _mean(key)
    return _POOLED[key.name](key, bucket_mass)


def _mean(key: MetricKey) -> Estimate:
    whole = MetricKey(key.name, key.k, key.item_group)

    def parts(users: UserParts) -> list[Array]:
        values = users.per_user_of(whole)
        defined = _members(users, key, ~np.isnan(values))
        return [np.where(defined, values, 0.0), defined]

    return Estimate(parts, _ratio, _ratio_gradient)


def _delta_gap(key: MetricKey, _: Array) -> Estimate:
    """The sums of a and b over users that have both; their ratio is that of the means."""

    def parts(users: UserParts) -> list[Array]:
        listed, profile = users.per_user_of(MetricKey("arp", key.k)), users.sum_of("profile_popularity")
        both = _members(users, key, ~np.isnan(listed) & ~np.isnan(profile))
        return [np.where(both, listed, 0.0), np.where(both, profile, 0.0), both]

    return Estimate(parts, lambda sums: _ratio(sums) - 1, lambda sums: np.append(_ratio_gradient(sums), 0.0))


def _exposure_rates(key: MetricKey, _: Array) -> Estimate:
    """`exposure_rate` of one group, `pop_rsp` of both."""
    names = _numerators_and_denominators(key, "listed_unseen", "eligible")
    return Estimate(lambda users: [*(users.sum_of(name) for name in names), users.sum_of("listed")], *_rates(names))


def _pooled_recalls(key: MetricKey, _: Array) -> Estimate:
    """`pooled_recall` of one group, `pop_reo` of both."""
    names = _numerators_and_denominators(key, "hits", "relevant")

    def parts(users: UserParts) -> list[Array]:
        sums = [users.sum_of(name) for name in names]
        return [*sums, np.asarray(sum(sums[1::2])) > 0]

    return Estimate(parts, *_rates(names))


def _numerators_and_denominators(key: MetricKey, numerator: str, denominator: str) -> list[str]:
    groups = ITEM_GROUPS if key.group is None else (key.group,)
    return [name for group in groups for name in (f"{numerator}@{key.k}/{group}", f"{denominator}/{group}")]


def _rates(names: list[str]) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    value, gradient = (_ratio, _ratio_gradient) if len(names) == 2 else (_disparity, _disparity_gradient)
    return value, lambda sums: np.append(gradient(sums), 0.0)


def _exposure_kl(key: MetricKey, bucket_mass: Array) -> Estimate:
    mass = bucket_mass / max(bucket_mass.sum(), 1)

    def terms(sums: Array) -> tuple[Array, Array]:
        """p and log2(p/q), 0 where p is 0, infinite where a bucket without mass is shown."""
        exposed = sums[..., :-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = exposed / exposed.sum(axis=-1, keepdims=True)
            return share, np.where(share > 0, np.log2(share / mass), 0.0)

    def value(sums: Array) -> Array:
        share, logs = terms(sums)
        total = (share * logs).sum(axis=-1)
        return np.where(np.isfinite(total), total, np.nan)

    def gradient(sums: Array) -> Array:
        return np.append((terms(sums)[1] - value(sums)) / sums[:-1].sum(), 0.0)

    return Estimate(lambda users: [users.sum_of(f"bucket_exposure@{key.k}"), users.sum_of("listed")], value, gradient)


_POOLED: dict[str, Callable[[MetricKey, Array], Estimate]] = {
    "delta_gap": _delta_gap,
    "exposure_kl": _exposure_kl,
    "exposure_rate": _exposure_rates,
    "pop_rsp": _exposure_rates,
    "pooled_recall": _pooled_recalls,
    "pop_reo": _pooled_recalls,
}


def _members(users: UserParts, key: MetricKey, chosen: Array) -> Array:
    """Those of the chosen that are in the user group of the key, if it has one."""
    if key.user_group is None:
        return chosen
    return np.asarray(chosen & (users.user_group == USER_GROUPS.index(key.user_group)))


def _ratio(sums: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[..., 1] > 0, sums[..., 0] / sums[..., 1], np.nan)


def _ratio_gradient(sums: Array) -> Array:
    return np.asarray(np.array([1.0, -float(_ratio(sums))]) / sums[1])


def _disparity(sums: Array) -> Array:
    a, b = _ratio(sums[..., :2]), _ratio(sums[..., 2:4])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a + b > 0, np.abs(a - b) / (a + b), np.nan)


def _disparity_gradient(sums: Array) -> Array:
    a, b = float(_ratio(sums[:2])), float(_ratio(sums[2:4]))
    slope = 2 * np.sign(a - b) / (a + b) ** 2
    return np.concatenate((slope * b * _ratio_gradient(sums[:2]), -slope * a * _ratio_gradient(sums[2:4])))
