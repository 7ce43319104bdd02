"""A plan says whether it fits and, if not, what does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caged.errors import ConfigError
from caged.models import METHODS
from caged.runs.planning.inventory import inventory
from caged.runs.planning.pace import rates_of
from caged.runs.planning.plan import GIB, plan
from caged.runs.planning.workload import BY_COLUMNS, PLANNED, Workload

BILLION = Workload(20_000_000, 2_000_000, 10**9, 64, 2)


def test_what_fits_needs_no_advice() -> None:
    made = plan(BILLION, 200 * GIB)
    assert made.fits
    assert made.advice == []
    assert made.to_json()["fits"] is True


def test_every_advice_is_one_that_fits() -> None:
    made = plan(replace(BILLION, embedding_size=256), 80 * GIB)
    assert not made.fits
    devices, columns = made.advice
    assert devices.startswith("use --devices 4:")
    assert inventory(replace(made.work, devices=4)).peak <= 80 * GIB < inventory(replace(made.work, devices=2)).peak
    width = int(columns.partition("embedding_size=")[2].partition(")")[0])
    assert inventory(replace(made.work, embedding_size=width)).peak <= 80 * GIB
    assert inventory(replace(made.work, embedding_size=width + 8)).peak > 80 * GIB


def test_a_graph_that_is_too_large_by_itself_is_told() -> None:
    (advice,) = plan(BILLION, 8 * GIB).advice
    assert advice.startswith("even with one column per device it takes")


def test_a_processor_has_no_more_devices() -> None:
    made = plan(replace(BILLION, device="cpu"), 64 * GIB)
    assert not any("--devices" in one for one in made.advice)


def test_less_validation_may_be_enough() -> None:
    for work, words in (
        (BILLION, "train.validation_users=10000"),
        (replace(BILLION, validation_users=100), "--no-val"),
    ):
        assert any(words in one for one in plan(work, inventory(work).peak - 2**28).advice), work


def test_only_what_is_left_is_told_where_a_change_is_enough() -> None:
    """Tables are small here: what helps is not to validate, and fewer columns do not."""
    work = Workload(200_000_000, 20_000_000, 10**10, 64, 2, devices=64, validation_users=10_000)
    first, last = plan(work, 140 * GIB).advice
    assert first.startswith("train without validation")
    assert last.startswith("leave out rare users")


@pytest.mark.parametrize("method", PLANNED)
def test_devices_are_advised_where_a_method_can_use_them(method: str) -> None:
    able = METHODS[method].method.by_columns is not None
    assert (method in BY_COLUMNS) is able
    work = replace(BILLION, method=method)
    assert any("--devices" in one for one in plan(work, inventory(work).peak - 8 * GIB).advice) is able
    if not able:
        with pytest.raises(ConfigError, match=f"{method} can be trained on one device only"):
            replace(work, devices=2)


def test_several_devices_tell_each_other_scores() -> None:
    made = plan(replace(BILLION, devices=4), 80 * GIB)
    assert made.message_bytes == 1.5 * 4 * (2 * made.work.batch + 1)
    assert any("bytes per step" in note for note in made.notes)
    assert plan(BILLION, 80 * GIB).message_bytes == 0


def test_methods_with_weights_per_edge_have_a_lower_bound() -> None:
    assert any("lower bound" in note for note in plan(replace(BILLION, method="caged"), 80 * GIB).notes)


def test_what_torch_keeps_is_told_apart_from_tensors() -> None:
    made = plan(BILLION, 80 * GIB)
    assert "tensors of up to 5" in made.notes[0]
    assert made.to_json()["memory_bytes"]["in_tensors"] < made.needed.peak
    (note,) = plan(replace(BILLION, device="cpu"), 80 * GIB).notes
    assert note.endswith(f"the time is that of {rates_of('cpu').name}")


def test_shorter_lists_are_advised_where_the_final_test_takes_most() -> None:
    work = Workload(2_000_000, 50_000, 10_000_000, 16, 1, device="cpu", tested_users=2_000_000)
    short = inventory(replace(work, list_length=20)).peak
    assert any(one.startswith("store shorter lists (eval.list_length=20)") for one in plan(work, short).advice)
    assert not any("shorter lists" in one for one in plan(work, short - 1).advice)


def test_on_a_gpu_the_memory_of_the_machine_is_told_beside() -> None:
    billion = Workload(20_000_000, 2_000_000, 10**9, 64, 2, tested_users=20_000_000)
    made = plan(billion)
    assert made.host_bytes > 12 * 100 * billion.users
    assert any("100 items for 20,000,000 users in the memory of the machine" in note for note in made.notes)
    assert made.to_json()["memory_bytes"]["host"] == made.host_bytes
    assert plan(replace(billion, tested_users=0)).host_bytes == 0
