"""Seconds are counted work times rates, and rates are found from measurements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from caged.errors import ConfigError
from caged.runs.planning import pace
from caged.runs.planning.pace import Measured, Rates, fitted, rates_of, seconds_per_epoch, work_of, write_rates
from caged.runs.planning.workload import Workload

RATES = Rates("a device", "a test", 2**30, 1e-4, 1e-10, 2e-11, 3e-12, 1e-12, 5e-10, 4e-10)
SHAPES = [
    Workload(20_000, 5_000, 300_000, 64, 3),
    Workload(200_000, 50_000, 3_000_000, 64, 1),
    Workload(2_000_000, 300_000, 30_000_000, 64, 2),
    Workload(2_000_000, 100_000, 80_000_000, 128, 2),
    Workload(400_000, 100_000, 30_000_000, 32, 3),
    Workload(900_000, 90_000, 5_000_000, 256, 2),
    Workload(900_000, 90_000, 9_000_000, 64, 2, "softmax"),
    Workload(20_000, 5_000, 2_000_000, 128, 1, "softmax"),
]


def measured(work: Workload) -> Measured:
    return Measured(work, seconds_per_epoch(work, RATES), RATES.draw * work.interactions)


def test_an_epoch_is_the_sum_of_its_work() -> None:
    work = Workload(100, 50, 1000, 8, 2, device="cpu", batch_size=100)
    amounts = work_of(work)
    assert amounts["launch"] == 10
    assert amounts["stream"] == 10 * 150 * 8
    assert amounts["cached"] == 10 * 2 * 1000 * 8
    assert amounts["gather"] == amounts["softmax"] == 0
    assert seconds_per_epoch(work, RATES) == pytest.approx(
        10 * 1e-4 + 12_000 * 1e-10 + 24_000 * 2e-11 + 160_000 * 1e-12 + 1000 * 4e-10
    )


def test_rates_are_found_again() -> None:
    found = fitted([measured(work) for work in SHAPES], {"gpu": "a device", "gpu_memory_gib": 1.0}, "a test")
    other = Workload(500_000, 200_000, 20_000_000, 96, 3)
    assert seconds_per_epoch(other, found) == pytest.approx(seconds_per_epoch(other, RATES), rel=0.02)
    assert (found.name, found.memory_bytes, found.draw) == ("a device", 2**30, pytest.approx(RATES.draw))


def test_half_the_columns_take_less_time() -> None:
    work = SHAPES[2]
    assert seconds_per_epoch(replace(work, devices=2), RATES) < seconds_per_epoch(work, RATES)


def test_rates_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "RATES", tmp_path / "rates.json")
    pace._stored.cache_clear()
    write_rates("cuda", RATES)
    assert rates_of("cuda") == RATES
    with pytest.raises(ConfigError, match="no rates are known for device 'cpu'"):
        rates_of("cpu")
    monkeypatch.undo()
    pace._stored.cache_clear()
    assert rates_of("cpu").name
