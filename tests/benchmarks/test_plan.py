"""`caged plan` against what was measured on one H200 and on two cores: within 15% in memory and 30% in time."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks import circumstances, plan, plan_train
from benchmarks.plan import CALIBRATED, CHECKED, compared, main
from benchmarks.plan_shape import measure
from caged.runs.planning.inventory import TEST, inventory
from caged.runs.planning.pace import Rates, rates_of, seconds_per_epoch
from caged.runs.planning.workload import Workload

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
SHAPES = {"cuda": sorted(RESULTS.glob("plan_*h200.json")), "cpu": sorted(RESULTS.glob("plan_*cpu2.json"))}
LOGS = sorted(RESULTS.glob("h200_log_*.json"))
MEMORY, TIME = 0.15, 0.30


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


MEASURED = [(device, line) for device, paths in SHAPES.items() for path in paths for line in read(path)["lines"]]
LINES = [line for device, line in MEASURED if device == "cuda"]


def test_there_is_something_to_compare_with() -> None:
    assert [len(paths) for paths in SHAPES.values()] == [2, 2]
    assert all(sum(device == one for one, _ in MEASURED) >= 15 for device in SHAPES)
    assert len(LOGS) == 4


@pytest.mark.parametrize(
    ("device", "line"), MEASURED, ids=["-".join(map(str, (device, *line["shape"]))) for device, line in MEASURED]
)
def test_shapes(device: str, line: dict[str, Any]) -> None:
    found = compared(line, device, rates_of(device))
    assert found["memory_ratio"] == pytest.approx(1, abs=MEMORY)
    assert found["time_ratio"] == pytest.approx(1, abs=TIME)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_logs_of_up_to_a_billion(path: Path) -> None:
    """None of them took part in the rates. The first epoch also compiles and records the step."""
    record = read(path)
    asked, epochs = record["asked"], record["epochs"]
    log = asked["log"]
    work = Workload(
        log["users"],
        log["items"],
        log["training_interactions"],
        asked["k"],
        asked["layers"],
        asked["method"],
        validation_users=log["sampled_users"],
    )
    needed = inventory(work)
    assert needed.peak == pytest.approx(max(one["reserved_bytes"] for one in epochs), rel=MEMORY)
    assert needed.in_tensors == pytest.approx(max(one["peak_bytes"] for one in epochs), rel=0.003)
    seconds = seconds_per_epoch(work, rates_of("cuda"))
    assert all(seconds == pytest.approx(one["phases_s"]["train"], rel=TIME) for one in epochs[1:])


def test_whole_trainings_with_their_final_test() -> None:
    lines = read(RESULTS / "train_memory_cpu2.json")["lines"]
    assert len(lines) == len(plan_train.SHAPES) >= 8
    assert [plan_train.compared(line)["memory_ratio"] for line in lines] == pytest.approx([1] * len(lines), abs=0.2)
    assert {plan_train.compared(line)["peak_phase"] for line in lines} == {TEST}


def test_tensors_of_the_check() -> None:
    lines = read(RESULTS / "plan_h200.json")["lines"]
    assert [compared(line, "cuda", rates_of("cuda"))["tensors_ratio"] for line in lines] == pytest.approx(
        [1] * len(CHECKED["cuda"]), rel=0.003
    )


def test_the_check_has_other_shapes_than_the_calibration() -> None:
    for device, shapes in CHECKED.items():
        assert len(shapes) >= 6
        assert not set(shapes) & set(CALIBRATED[device])


def test_the_record_has_every_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(LINES)
    monkeypatch.setattr(plan, "in_own_process", lambda shape, device: next(lines))
    monkeypatch.setattr(circumstances, "hardware", lambda device: {"device": device.type})
    main(["--device", "cuda", "--out", str(tmp_path / "new" / "plan.json")])
    record = read(tmp_path / "new" / "plan.json")
    assert record["hardware"] == {"device": "cuda"}
    assert record["calibrated"] is False
    assert len(record["lines"]) == 6
    assert all({"memory_ratio", "tensors_ratio", "time_ratio"} <= line.keys() for line in record["lines"])
    assert record["worst"]["memory_ratio"] == max(abs(line["memory_ratio"] - 1) for line in record["lines"])


def numbers(rates: Rates) -> dict[str, float]:
    return {name: value for name, value in asdict(rates).items() if not isinstance(value, str)}


def test_rates_are_fitted_to_a_record_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RESULTS / "plan_calibration_h200.json"
    kept: dict[str, Any] = {}
    monkeypatch.setattr(plan, "write_rates", kept.__setitem__)
    main(["--device", "cuda", "--calibrate", "--measured", str(record)])
    assert kept["cuda"].name == rates_of("cuda").name
    assert numbers(kept["cuda"]) == pytest.approx(numbers(rates_of("cuda")), rel=1e-6)
    with pytest.raises(SystemExit):
        main(["--device", "cuda", "--measured", str(record)])


def test_a_record_of_another_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "write_rates", lambda *_: pytest.fail("rates of a GPU were written as those of a CPU"))
    with pytest.raises(SystemExit, match="measured on cuda, not on cpu"):
        main(["--device", "cpu", "--calibrate", "--measured", str(RESULTS / "plan_calibration_h200.json")])


def test_steps_are_taken_from_a_block_that_has_few() -> None:
    """Six steps: no empty one takes part."""
    found = measure([1000, 400, 12_000, 8, 2, "lightgcn"], "cpu")
    assert found["seconds"] > 2 * found["drawing_s"]


def test_a_shape_is_measured_on_this_machine() -> None:
    found = measure([2000, 500, 20_000, 8, 2, "lightgcn"], "cpu")
    assert found["seconds"] > found["drawing_s"] > 0
    assert list(found["peaks_by_phase"]) == ["graph", "tables", "sampler", "drawing", "steps", "validation"]
    assert found["memory_bytes"] == max(found["peaks_by_phase"].values())
