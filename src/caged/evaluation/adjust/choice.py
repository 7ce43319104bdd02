"""What an adjustment is, and how its strength is chosen on a validation part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from caged.arguments import choice, finite_number
from caged.errors import ConfigError

Form = Literal["degree", "norm", "quota"]
FORMS: tuple[str, ...] = get_args(Form)
OF_SCORES: tuple[str, ...] = ("degree", "norm")  # forms that change scores; `quota` picks from lists
# 0, 0.05, ... 1, and finer where it begins: the first step of `degree` may cost more than 1% of the recall already.
GRID = (0.0, 0.01, 0.02, 0.03, 0.04, *(round(0.05 * step, 2) for step in range(1, 21)))
KEEP = 0.99


@dataclass(frozen=True)
class Adjustment:
    """How popularity is taken out.

    >>> str(Adjustment("degree", 0.15))
    'degree, strength 0.15'
    """

    form: Form = "degree"
    strength: float = 0.0

    def __post_init__(self) -> None:
        choice("form", self.form, FORMS)
        checked_share("strength", self.strength)

    def __str__(self) -> str:
        return f"{self.form}, strength {self.strength:g}"

    @property
    def is_neutral(self) -> bool:
        return self.strength == 0


@dataclass(frozen=True)
class Chosen:
    """A strength, and the values on validation that it was chosen by: one for every strength that was tried."""

    strength: float
    keep: float
    tried: tuple[tuple[float, float], ...]

    @property
    def reaches_the_end(self) -> bool:
        """No strength of the grid cost more than allowed."""
        return self.strength == GRID[-1]


def checked_share(name: str, value: Any) -> float:
    share = finite_number(name, value)
    if not 0 <= share <= 1:
        raise ConfigError(f"{name} is {share:g}; it must lie between 0 and 1")
    return share


def parsed_share(name: str, text: str) -> float:
    """
    >>> parsed_share("--keep", "99%"), parsed_share("--keep", "0.98")
    (0.99, 0.98)
    """
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ConfigError(f"{name} is '{text}'; write a share such as 99% or 0.99") from None
    if share > 1:
        raise ConfigError(f"{name} is '{text}'; write a share of at most 100%, such as 99% or 0.99")
    return checked_share(name, share)


def choose_strength(recall_at: Callable[[float], float], keep: float = KEEP, grid: Sequence[float] = GRID) -> Chosen:
    """The largest strength of the grid such that it and every smaller one keep this share of the recall without any.

    `recall_at` is the recall on validation at a strength; it is not asked beyond the first strength that costs more.

    >>> choose_strength({0.0: 0.2, 0.05: 0.201, 0.1: 0.199, 0.15: 0.19}.__getitem__, 0.99, (0.0, 0.05, 0.1, 0.15))
    Chosen(strength=0.1, keep=0.99, tried=((0.0, 0.2), (0.05, 0.201), (0.1, 0.199), (0.15, 0.19)))
    """
    keep = checked_share("keep", keep)
    unadjusted = recall_at(grid[0])
    if not unadjusted > 0:
        raise ConfigError(
            f"recall on validation is {unadjusted:g} without any adjustment, so there is nothing to keep a share of; "
            f"give a strength instead"
        )
    chosen, tried = grid[0], [(grid[0], unadjusted)]
    for strength in grid[1:]:
        recall = recall_at(strength)
        tried.append((strength, recall))
        if recall < keep * unadjusted:
            break
        chosen = strength
    return Chosen(chosen, keep, tuple(tried))
