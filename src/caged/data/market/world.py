"""What users truly like: drawn once, never changed by the feedback loop.

With unit vectors e_g of G genres, eps = independent standard normal vectors and norm(x) = x / |x|:

    item        v_i = norm(e_{g_i} + item_spread eps / sqrt(G)),                       q_i ~ N(0, quality_sd^2)
    user        z_u = norm(m_u e_{a_u} + (1 - m_u) e_{b_u} + user_spread eps / sqrt(G)),  m_u ~ U(0.5, 1)
    preference  p_ui = sigmoid(sharpness <z_u, v_i> + q_i - b),   b such that the mean of p is like_rate

The popularity of an item never enters p: users do not conform. The genres g_i are balanced; the favourites a_u and
b_u are drawn independently, so that one user in G has a single favourite.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from caged.data.ids import Array
from caged.data.market.config import MarketConfig, stream
from caged.errors import ConfigError, RunError
from caged.files import replacing

MATRIX_BUDGET = 1 << 28  # bytes: 33.5 million pairs in float64; the default market needs 24 MB
_BLOCK_PAIRS = 1 << 20  # pairs of one block of users in whole-catalogue passes: 8 MB per temporary, fits a cache

_CALIBRATION_PAIRS = 200_000
_BISECTION_STEPS = 60
_LEAST_ACTIVITY = 0.02

_ARRAYS = ("z", "v", "q", "item_genres", "user_genres", "mix", "activity", "head_start")
_SCALARS = ("b", "sharpness")


@dataclass(frozen=True, eq=False)
class World:
    """Users and items of a market in row numbers, and how much every user likes every item."""

    z: Array  # float64 (M, G): unit taste vectors
    v: Array  # float64 (N, G): unit item vectors
    q: Array  # float64 (N,): quality
    b: float  # offset that makes the mean preference equal like_rate
    sharpness: float
    item_genres: Array  # int64 (N,)
    user_genres: Array  # int64 (M, 2): favourites a_u, b_u
    mix: Array  # float64 (M,): weight of the first favourite
    activity: Array  # float64 (M,): chance to visit in a round
    head_start: Array  # float64 (N,): pseudo-clicks before the first round

    @property
    def user_count(self) -> int:
        return len(self.z)

    @property
    def item_count(self) -> int:
        return len(self.v)

    def true_preference(self, users: Array, items: Array) -> Array:
        """p of each (user, item) pair of row numbers; the two arrays broadcast against each other."""
        taste = np.einsum("...g,...g->...", self.z[users], self.v[items])
        return _sigmoid(self.sharpness * taste + self.q[items] - self.b)

    def preference_rows(self, users: Array | slice) -> Array:
        """p of some users with every item, shape (users, N); the caller chooses blocks that fit its memory."""
        logits = self.z[users] @ self.v.T
        logits *= self.sharpness
        logits += self.q - self.b
        return _sigmoid(logits)

    def preference_blocks(self) -> Iterator[tuple[int, int, Array]]:
        """(start, stop, p of the users start..stop-1 with every item) over all users."""
        step = users_per_block(self.item_count)
        for start in range(0, self.user_count, step):
            stop = min(start + step, self.user_count)
            yield start, stop, self.preference_rows(slice(start, stop))

    def preference_matrix(self, budget: int = MATRIX_BUDGET) -> Array:
        """The full (M, N) matrix of p, if its float64 values fit into `budget` bytes."""
        needed = self.user_count * self.item_count * 8
        if needed > budget:
            raise ConfigError(
                f"the preferences of {self.user_count:,} users for {self.item_count:,} items need {needed:,} bytes; "
                f"at most {budget:,} are allowed, ask true_preference for the pairs you need or raise budget"
            )
        matrix = np.empty((self.user_count, self.item_count))
        for start, stop, rows in self.preference_blocks():
            matrix[start:stop] = rows
        return matrix

    def true_appeal(self) -> Array:
        """Mean preference of all users for each item (N,)."""
        total = np.zeros(self.item_count)
        for _, _, rows in self.preference_blocks():
            total += rows.sum(axis=0)
        return total / self.user_count

    def save(self, path: Path) -> None:
        """All arrays as one uncompressed .npz file."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in (*_ARRAYS, *_SCALARS)}
        with replacing(path) as temporary, temporary.open("wb") as handle:
            np.savez(handle, **arrays)

    @classmethod
    def load(cls, path: Path) -> World:
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays: dict[str, Any] = {name: stored[name] for name in _ARRAYS}
                return cls(**arrays, b=float(stored["b"]), sharpness=float(stored["sharpness"]))
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise RunError(f"{path} is not the world of a market ({error}); simulate the market again") from error


def users_per_block(item_count: int) -> int:
    """Users whose whole rows make one block."""
    return max(1, _BLOCK_PAIRS // item_count)


def draw_world(config: MarketConfig) -> World:
    """The world of a configuration; it depends on the seed and on the parameters of the world alone."""
    rng = stream(config.seed, "world")
    users, items, genres = config.user_count, config.item_count, config.genres

    item_genres = rng.permutation(np.arange(items) % genres)
    v = config.item_spread * rng.standard_normal((items, genres)) / np.sqrt(genres)
    v[np.arange(items), item_genres] += 1.0
    v = _unit_rows(v)
    q = config.quality_sd * rng.standard_normal(items)

    user_genres = rng.integers(0, genres, size=(users, 2))
    mix = rng.uniform(0.5, 1.0, size=users)
    z = config.user_spread * rng.standard_normal((users, genres)) / np.sqrt(genres)
    rows = np.arange(users)
    z[rows, user_genres[:, 0]] += mix
    z[rows, user_genres[:, 1]] += 1.0 - mix
    z = _unit_rows(z)

    luck = config.activity_sd * rng.standard_normal(users) - config.activity_sd**2 / 2
    activity = np.clip(config.activity_mean * np.exp(luck), _LEAST_ACTIVITY, 1.0)
    advertising = np.exp(config.head_start_sd * rng.standard_normal(items))
    head_start = config.head_start_mean * items * advertising / advertising.sum()

    pair_users = rng.integers(0, users, size=_CALIBRATION_PAIRS)
    pair_items = rng.integers(0, items, size=_CALIBRATION_PAIRS)
    taste = np.einsum("pg,pg->p", z[pair_users], v[pair_items])
    b = _calibrate(config.sharpness * taste + q[pair_items], config.like_rate)
    return World(
        z=z,
        v=v,
        q=q,
        b=b,
        sharpness=config.sharpness,
        item_genres=item_genres,
        user_genres=user_genres,
        mix=mix,
        activity=activity,
        head_start=head_start,
    )


def _calibrate(logits: Array, like_rate: float) -> float:
    """b with mean(sigmoid(logits - b)) = like_rate, by bisection; the mean falls as b rises."""
    # 40 beyond the extremes the mean is 0 or 1 up to 1e-17, so the root is inside for any like_rate.
    low, high = float(logits.min()) - 40.0, float(logits.max()) + 40.0
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        if _sigmoid(logits - middle).mean() > like_rate:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _unit_rows(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):  # exp overflows to infinity below -709, where the result 0 is right
        return np.asarray(1.0 / (1.0 + np.exp(-x)))
