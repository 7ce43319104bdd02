"""What can be planned, and the numbers that follow from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from caged.errors import ConfigError
from caged.models.registry import METHODS
from caged.runs.planning.workload import PLANNED, Workload, auto_batch
from caged.training import TrainConfig

WORK = Workload(users=1000, items=500, interactions=40_000)


@pytest.mark.parametrize("interactions", [5, 2048, 409_600, 409_601, 10**9])
def test_automatic_batches_are_those_of_training(interactions: int) -> None:
    assert auto_batch(interactions) == TrainConfig(batch_size="auto").batches(interactions)[0]


def test_devices_share_the_columns() -> None:
    assert replace(WORK, devices=3).columns == 22
    assert replace(WORK, devices=4).numbers == 16 * 1500


def test_all_methods_are_known() -> None:
    assert set(PLANNED) <= set(METHODS)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"users": 0}, "users is 0"),
        ({"device": "tpu"}, "device"),
        ({"method": "ease"}, "method 'ease' cannot be made"),
        ({"interactions": 500_001}, "500,000 pairs"),
        ({"devices": 65}, "share 64 columns"),
        ({"layers": -1}, "layers is -1"),
    ],
)
def test_impossible_workloads_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        replace(WORK, **changed)
