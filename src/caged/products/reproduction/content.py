"""What a record holds beside its settings, read with care: a file that somebody damaged is named, in one sentence.

What a record does not hold, or holds as null, is not known; what it holds in another form than runs write is damage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from caged.arguments import described
from caged.errors import RunError
from caged.products.study import Recorded


def metric_of(one: Recorded, key: str) -> float | None:
    value = _table(one, "metrics").get(key)
    if value is None:
        return None
    if not _is_number(value):
        raise _damage(one, f"metric {key}", value, "a number or null")
    return float(value)


def users_of(one: Recorded) -> Mapping[str, Any] | None:
    """What it says about the file with its values per user; None where there never was one."""
    content = one.content or {}
    if "per_user" not in content:
        return None
    about = content["per_user"]
    if not isinstance(about, dict) or not all(isinstance(about.get(key), str) for key in ("ids", "sha256")):
        raise _damage(one, "per_user", about, "a table with the checksums ids and sha256")
    return about


def curve_of(one: Recorded) -> dict[int, float]:
    """Epoch -> what validation said after it, in the last stage; empty where that is not recorded."""
    stages = _list(one, "history")
    if not stages:
        return {}
    last = stages[-1] if isinstance(stages[-1], dict) else {}
    epochs, values = last.get("epochs"), last.get("values")
    if not (_are_numbers(epochs) and _are_numbers(values) and len(epochs) == len(values)) or not all(
        isinstance(epoch, int) and epoch > 0 for epoch in epochs
    ):
        raise _damage(
            one, "the last stage of history", stages[-1], "a table with as many epochs as values, all numbers"
        )
    return dict(zip(epochs, values, strict=True))


def densities_of(one: Recorded) -> list[Mapping[str, Any]]:
    """A curve per moment of training; empty where none is recorded."""
    curves = _list(one, "densities")
    for curve in curves:
        if not _is_density(curve) or len(curve["values"]) != len(curves[0]["values"]):
            raise _damage(
                one, "one of its densities", curve, "a table with name, updates, mean, above and as many values as all"
            )
    return list(curves)


def gpu_seconds(one: Recorded) -> float:
    """That its run spent on a GPU: its share where other runs were made beside it."""
    hardware, seconds = _table(one, "hardware"), _table(one, "seconds")
    total, together = seconds.get("total", 0.0), hardware.get("side_by_side", 1)
    if not _is_number(total) or total < 0:
        raise _damage(one, "seconds.total", total, "a number that is not negative")
    if not _is_number(together) or together < 1:
        raise _damage(one, "hardware.side_by_side", together, "a number from 1 on")
    return float(total / together) if hardware.get("gpu") else 0.0


def _table(one: Recorded, part: str) -> Mapping[str, Any]:
    found = (one.content or {}).get(part)
    if found is not None and not isinstance(found, dict):
        raise _damage(one, part, found, "a table")
    return found or {}


def _list(one: Recorded, part: str) -> Sequence[Any]:
    found = (one.content or {}).get(part)
    if found is not None and not isinstance(found, list):
        raise _damage(one, part, found, "a list")
    return found or []


def _damage(one: Recorded, part: str, value: Any, allowed: str) -> RunError:
    return RunError(
        f"{one.path} is damaged: {part} is {described(value)}, it must be {allowed}; restore the file, or delete it "
        f"and run it again"
    )


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_numbers(values: Any) -> TypeGuard[list[Any]]:
    return isinstance(values, list) and all(map(_is_number, values))


def _is_density(curve: Any) -> bool:
    return (
        isinstance(curve, dict)
        and isinstance(curve.get("name"), str)
        and all(_is_number(curve.get(key)) for key in ("updates", "mean", "above"))
        and _are_numbers(curve.get("values"))
        and len(curve["values"]) > 0
    )
