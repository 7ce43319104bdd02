"""What can be asked, checked: one sentence for whatever cannot be answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from caged.arguments import described, whole_number
from caged.errors import ConfigError

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Limits:
    """Beyond these a request is refused, before any work."""

    k: int = 1000
    history: int = 10_000
    ids: int = 100_000  # in `exclude` or `candidates`
    batch: int = 1000
    body_bytes: int = 8 * 2**20

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise ConfigError(f"the limit on {name} is {value}; it must be 1 or more")


class Ask(NamedTuple):
    """Who asks, and for what. Exactly one of `user_id` and `history` says who."""

    user_id: str | int | None = None
    history: Sequence[str | int] | None = None
    k: int = 20
    exclude: Sequence[str | int] = ()
    candidates: Sequence[str | int] | None = None
    filters: Mapping[str, Scalar | Sequence[Scalar]] = MappingProxyType({})
    less_popular: float | None = None  # None: as the artefact stands
    exclude_seen: bool = True

    def check(self, limits: Limits) -> None:
        if (self.user_id is None) == (self.history is None):
            raise ConfigError("say who asks: give either user_id or history")
        if self.history is not None and not self.history:
            raise ConfigError("history is empty; give at least one item, or a user_id")
        whole_number("k", self.k, least=1, most=limits.k, advice="")
        _check_knob(self.less_popular)
        _check_ids("history", self.history, limits.history)
        _check_ids("exclude", self.exclude, limits.ids)
        _check_ids("candidates", self.candidates, limits.ids)


class AskItem(NamedTuple):
    """What is like an item."""

    item_id: str | int
    k: int = 10

    def check(self, limits: Limits) -> None:
        whole_number("k", self.k, least=1, most=limits.k, advice="")


def _check_knob(strength: Any) -> None:
    if strength is None:
        return
    if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0 <= strength <= 1:  # NaN fails, too
        raise ConfigError(f"less_popular is {described(strength)}; it must lie between 0 and 1")


def _check_ids(name: str, ids: Any, most: int) -> None:
    if ids is None:
        return
    if not isinstance(ids, list) and (isinstance(ids, str | bytes) or not isinstance(ids, Sequence)):
        raise ConfigError(f"{name} is {described(ids)}; give a list of item ids")
    if len(ids) > most:
        raise ConfigError(f"{name} holds {len(ids):,} ids; at most {most:,} are allowed")
