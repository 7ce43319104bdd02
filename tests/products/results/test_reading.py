"""Which recorded results a table takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.errors import CagedError
from caged.products.results.reading import read_results
from tests.products.results.recorded import record, several

ALL = {("a", "ips"): 0.1, ("a", "lightgcn"): 0.1, ("b", "caged-code"): 0.2, ("b", "caged-paper"): 0.3}


def methods(root: Path, **options: object) -> list[str]:
    return list(dict.fromkeys(entry.method for entry in read_results(root, **options).entries))  # type: ignore[arg-type]


def test_lightgcn_comes_first_and_what_is_asked_for_in_its_order(tmp_path: Path) -> None:
    several(tmp_path, ALL, seeds=(1,))
    assert methods(tmp_path) == ["lightgcn", "ips", "caged-code", "caged-paper"]
    assert methods(tmp_path, methods=["caged-*", "ips"]) == ["caged-code", "caged-paper", "ips"]
    assert methods(tmp_path, datasets=["b"]) == ["caged-code", "caged-paper"]


def test_unfinished_runs_are_counted_and_left_out(tmp_path: Path) -> None:
    several(tmp_path, ALL, seeds=(1,))
    record(tmp_path, "a", "ips", 2, status="failed", metrics=None)
    found = read_results(tmp_path)
    assert (len(found.entries), found.unfinished) == (4, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": ["ipz"]}, "unknown method 'ipz'.*did you mean 'ips'"),
        ({"datasets": ["c"]}, "unknown dataset 'c'; known: a, b"),
        ({"protocol": "paper"}, "unknown protocol 'paper'; known: honest"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, options: dict[str, object], words: str) -> None:
    several(tmp_path, ALL, seeds=(1,))
    with pytest.raises(CagedError, match=words):
        read_results(tmp_path, **options)  # type: ignore[arg-type]


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CagedError, match="does not exist"):
        read_results(tmp_path / "none")
    with pytest.raises(CagedError, match="holds no recorded results"):
        read_results(tmp_path)
    (tmp_path / "a/honest/ips").mkdir(parents=True)
    (tmp_path / "a/honest/ips/seed1.json").write_text("{")
    with pytest.raises(CagedError, match="not readable JSON"):
        read_results(tmp_path)
