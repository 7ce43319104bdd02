"""What was made is kept, the last asked for longest, and never more than fits."""

from __future__ import annotations

import pytest

from caged.products.serve.remembered import Remembered


def test_a_value_is_made_once() -> None:
    made: list[int] = []
    kept: Remembered[int] = Remembered(lambda _: 1, 10)
    for key in (1, 2, 1, 2):
        assert kept.get(key, lambda key=key: made.append(key) or 10 * key) == 10 * key  # type: ignore[misc]
    assert made == [1, 2]


def test_what_was_not_asked_for_longest_makes_room() -> None:
    kept: Remembered[str] = Remembered(len, 6)
    for key in ("ab", "cd", "ef", "ab", "gh"):
        kept.get(key, lambda key=key: key)  # type: ignore[misc]
    assert list(kept._known) == ["ef", "ab", "gh"]
    kept.get("too long", lambda: "too long")
    assert len(kept) == 3
    kept.get("longer", lambda: "longer")
    assert list(kept._known) == ["longer"]


def test_no_more_than_so_many_are_kept() -> None:
    kept: Remembered[str] = Remembered(len, 1000, most=2)
    for key in "abcd":
        kept.get(key, lambda key=key: key)  # type: ignore[misc]
    assert list(kept._known) == ["c", "d"]


def test_an_error_is_not_remembered() -> None:
    kept: Remembered[float] = Remembered(lambda _: 1, 10)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 / 0)
    assert kept.get("a", lambda: 1.0) == 1.0
