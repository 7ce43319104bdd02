"""`caged train` refuses what cannot fit before it writes or allocates anything."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from caged.data import Interactions
from caged.errors import DeviceError
from caged.runs.execute import resume, start
from caged.runs.folder import RunFolder
from caged.runs.planning import fitting
from caged.runs.planning.fitting import refuse_what_cannot_fit
from caged.runs.planning.machine import available_memory
from caged.runs.planning.plan import plan
from caged.runs.planning.workload import Workload
from caged.runs.spec import ExperimentSpec, resolve
from caged.training import Interrupted

CPU = torch.device("cpu")


def spec_of(method: str = "lightgcn", *overrides: str) -> ExperimentSpec:
    return resolve("log.csv", method, overrides=list(overrides), device="cpu")


TRAIN = Interactions.from_ids([0, 0, 1, 2], [0, 1, 1, 2])


def with_free(monkeypatch: pytest.MonkeyPatch, free: int | None) -> None:
    monkeypatch.setattr(fitting, "free_memory", lambda _: free)


def test_too_little_memory_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 1 << 20)
    with pytest.raises(DeviceError) as error:
        refuse_what_cannot_fit(spec_of(), TRAIN, CPU)
    assert "training needs about 0.4 GiB, and this machine has 1 MiB free; " in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(DeviceError, match="has 0 MiB free for each of 4 processes"):
        refuse_what_cannot_fit(spec_of(), TRAIN, CPU, ranks=4)


def test_ranks_that_share_a_machine_need_its_memory_several_times(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = plan(Workload(3, 3, 4, 64, 3, device="cpu", devices=2, batch_size=2048), 1).needed.peak
    with_free(monkeypatch, round(1.2 * needed))  # enough for one of the two
    with pytest.raises(DeviceError, match="for each of 2 processes"):
        refuse_what_cannot_fit(spec_of(), TRAIN, CPU, ranks=2)
    with_free(monkeypatch, round(2.2 * needed))
    refuse_what_cannot_fit(spec_of(), TRAIN, CPU, ranks=2)


def test_what_may_just_fit_is_tried(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    needed = plan(Workload(3, 3, 4, 64, 3, device="cpu", batch_size=2048), 1).needed.peak
    with_free(monkeypatch, round(0.95 * needed))
    with caplog.at_level(logging.WARNING, logger="caged"):
        refuse_what_cannot_fit(spec_of(), TRAIN, CPU)
    assert "it may not fit" in caplog.text


@pytest.mark.parametrize("method", ["mostpop", "ease"])
def test_methods_without_tables_are_let_through(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    with_free(monkeypatch, 1)
    refuse_what_cannot_fit(spec_of(method), TRAIN, CPU)


def test_unknown_memory_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, None)
    refuse_what_cannot_fit(spec_of(), TRAIN, CPU)


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 1 << 20)
    log = tmp_path / "log.csv"
    log.write_text("user_id,item_id\n" + "".join(f"{user},{item}\n" for user in range(9) for item in range(user, 14)))
    with pytest.raises(DeviceError, match="training with the final test needs about"):
        start(resolve(str(log), "lightgcn", device="cpu"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_final_test_is_refused_before_the_first_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do about it: everybody's lists are what takes the memory."""
    wide = Interactions.from_ids(list(range(300)), list(range(300)))
    needed = plan(Workload(300, 300, 300, 4, 3, device="cpu", batch_size=2048), 1).needed.peak
    with_free(monkeypatch, needed)
    refuse_what_cannot_fit(spec_of("lightgcn", "method.embedding_size=4"), wide, CPU)
    with pytest.raises(DeviceError, match=r"training with the final test needs about 0\.6 GiB, and this machine has"):
        refuse_what_cannot_fit(spec_of("lightgcn", "method.embedding_size=4"), wide, CPU, tested_users=300)


def test_what_fits_is_not_talked_about(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with_free(monkeypatch, 2**40)
    refuse_what_cannot_fit(spec_of(), TRAIN, CPU, tested_users=3)
    assert not caplog.records


def test_only_users_with_a_test_item_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part, rows in {"train": [(0, 0), (1, 1), (2, 2), (3, 0)], "valid": [(1, 0)], "test": [(0, 1), (0, 2)]}.items():
        lines = "".join(f"{user},{item}\n" for user, item in rows)
        (tmp_path / f"{part}.csv").write_text(f"user_id,item_id\n{lines}")
    asked: list[int] = []
    monkeypatch.setattr(
        "caged.runs.execute.refuse_what_cannot_fit", lambda *_, tested_users: asked.append(tested_users)
    )
    start(resolve(str(tmp_path), "mostpop", device="cpu"), tmp_path / "run", no_report=True)
    assert asked == [1]


def test_ranks_on_a_machine_share_its_final_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists are there once, however many ranks make them."""
    asked: list[Workload] = []
    monkeypatch.setattr(fitting, "plan", lambda work, memory: asked.append(work) or plan(work, memory))
    with_free(monkeypatch, 2**40)
    for ranks in (1, 4):
        refuse_what_cannot_fit(spec_of(), TRAIN, CPU, ranks, tested_users=10)
    assert [work.tested_users for work in asked] == [10, 3]


def test_on_a_gpu_the_lists_need_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 2**40)
    monkeypatch.setattr(fitting, "available_memory", lambda: 2**28)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    cuda = torch.device("cuda")
    refuse_what_cannot_fit(spec_of(), TRAIN, cuda)
    with pytest.raises(DeviceError, match=r"of the memory of this machine, .*; test fewer users"):
        refuse_what_cannot_fit(spec_of(), TRAIN, cuda, tested_users=3)


def test_a_run_that_goes_on_is_refused_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may go on with fewer devices, or while something else takes the memory. Nothing of it is changed."""
    log = tmp_path / "log.csv"
    log.write_text("user_id,item_id\n" + "".join(f"{user},{item}\n" for user in range(9) for item in range(user, 14)))
    spec = resolve(str(log), "lightgcn", overrides=["train.epochs=3"], device="cpu")
    with pytest.raises(Interrupted):
        start(spec, tmp_path / "run", stop_requested=lambda: True)
    before = (tmp_path / "run" / "run.json").read_bytes()
    with_free(monkeypatch, 1 << 20)
    with pytest.raises(DeviceError, match="needs about"):
        resume(RunFolder.read(tmp_path / "run"))
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    with_free(monkeypatch, None)
    assert resume(RunFolder.read(tmp_path / "run")).run.status == "finished"


def test_available_memory_is_that_of_the_container_where_it_has_less(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 4000 kB\nMemAvailable:    3000 kB\n")
    assert available_memory(tmp_path / "meminfo", tmp_path) == 3000 * 1024
    for name, content in (("memory.max", "2048000\n"), ("memory.current", "1000000\n"), ("memory.stat", "file 500\n")):
        (tmp_path / name).write_text(content)
    assert available_memory(tmp_path / "meminfo", tmp_path) == 1_048_500
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(tmp_path / "meminfo", tmp_path) == 3000 * 1024
    assert available_memory(tmp_path / "absent", tmp_path) is None
