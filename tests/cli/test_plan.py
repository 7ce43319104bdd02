"""`caged plan`: what it prints, what it refuses."""

from __future__ import annotations

import json

import pytest

from tests.cli.invoke import caged

BILLION = ("--users", "20M", "--items", "2M", "--interactions", "1B", "--layers", "2")


def test_a_billion_fits_one_large_device() -> None:
    done = caged("plan", *BILLION)
    assert done.code == 0
    assert "It fits." in done.out
    assert "NVIDIA H200" in done.err


def test_what_does_not_fit_is_told_with_a_way_out() -> None:
    done = caged("plan", *BILLION, "--memory", "50")
    assert done.code == 0
    assert "It does not fit: use --devices 2" in done.out


def test_json_has_every_allocation_of_the_worst_moment() -> None:
    made = json.loads(caged("plan", *BILLION, "--json").out)
    sizes = [one["bytes"] for one in made["memory_bytes"]["allocations"]]
    assert sum(sizes) == pytest.approx(made["memory_bytes"]["predicted"], abs=len(sizes))
    assert made["workload"]["steps"] == 200
    assert made["seconds_per_epoch"] > 0


def test_on_cpu_this_machine_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caged.cli.plan.available_memory", lambda: 2**40)
    done = caged("plan", *BILLION, "--device", "cpu")
    assert done.code == 0
    assert "1024.0 GiB" in done.out
    assert "It fits." in done.out
    assert "128.0 GiB" in caged("plan", *BILLION, "--device", "cpu", "--devices", "8").out
    monkeypatch.setattr("caged.cli.plan.available_memory", lambda: None)
    done = caged("plan", *BILLION, "--device", "cpu")
    assert done.code == 2
    assert "say it with --memory" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--users", "many"], "--users is 'many'; write a whole number"),
        (["--memory", "0"], "--memory is 0"),
        (["--method", "mostpop"], "method 'mostpop' cannot be made"),
    ],
)
def test_bad_input_is_one_sentence(options: list[str], said: str) -> None:
    done = caged("plan", *BILLION, *options)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
