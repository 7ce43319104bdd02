"""What a server may be told."""

from __future__ import annotations

from typing import Any

import pytest

from caged.errors import ConfigError
from caged.products.serve.settings import Settings, check_reachable


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"key": "short"}, "at least 16 ASCII characters"),
        ({"key": "ä" * 20}, "at least 16 ASCII characters"),
        ({"threads": 0}, "threads is 0"),
        ({"queue": -1}, "queue is -1"),
        ({"timeout_s": 0}, "above 0 seconds"),
        ({"timeout_s": float("nan")}, "above 0 seconds"),
    ],
)
def test_what_cannot_work_is_a_sentence(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Settings(**values)


def test_only_this_machine_needs_no_key() -> None:
    check_reachable("127.0.0.1", Settings())
    check_reachable("0.0.0.0", Settings(key="0123456789abcdef"))
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0 can be reached from other machines"):
        check_reachable("0.0.0.0", Settings())
