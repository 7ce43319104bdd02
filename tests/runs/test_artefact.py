"""A model folder is taken only as a whole: damaged files and files of another run are one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import caged
from caged.errors import RunError
from tests.cli.invoke import caged as command
from tests.cli.invoke import refused, refused_without_a_trace, train

FILES = ("model.safetensors", "training_data.safetensors")
READERS = (["recommend", "run", "--all-users"], ["evaluate", "run"], ["explain", "run", "--user", "u01"])


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture(scope="module")
def other_run(log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same data and shapes, other numbers."""
    folder = tmp_path_factory.mktemp("other") / "run"
    train(log_csv, folder, "--seed", "2", "--set", "data.split_seed=2")
    return folder


def flip(path: Path, place: int = -5) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def without_checksums(run: Path) -> None:
    """As runs were before there were any."""
    manifest = json.loads((run / "checkpoint" / "checkpoint.json").read_text())
    kept = {key: value for key, value in manifest.items() if key not in ("checksum", "training_data")}
    (run / "checkpoint" / "checkpoint.json").write_text(json.dumps(kept))
    for file in FILES:
        save_file(load_file(run / "checkpoint" / file), run / "checkpoint" / file)


@pytest.mark.parametrize("file", FILES)
def test_a_flipped_bit(file: str, run: Path) -> None:
    flip(run / "checkpoint" / file)
    for arguments in READERS:
        refused_without_a_trace(run.parent, arguments, file, "is damaged", "checksum", "restore")


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_another_run(file: str, run: Path, other_run: Path) -> None:
    shutil.copy(other_run / "checkpoint" / file, run / "checkpoint" / file)
    for arguments in READERS:
        refused_without_a_trace(run.parent, arguments, file, "another run", "restore")


def test_a_flipped_bit_in_a_saved_model(run: Path, tmp_path: Path) -> None:
    saved = caged.load(run, device="cpu").save(tmp_path / "saved")
    flip(saved / FILES[0])
    with pytest.raises(RunError, match=r"model\.safetensors is damaged: '(users|items)'"):
        caged.load(saved)


def test_a_flipped_bit_in_a_training_state(log_csv: Path, tmp_path: Path) -> None:
    from caged.runs.execute import start
    from caged.runs.spec import resolve
    from caged.training import Interrupted

    spec = resolve(str(log_csv), "lightgcn", overrides=["method.embedding_size=4"], device="cpu")
    with pytest.raises(Interrupted):
        start(spec, tmp_path / "run", stop_requested=lambda: True)
    flip(tmp_path / "run" / "checkpoint" / "state-1.safetensors")
    refused(command("train", "--resume", tmp_path / "run"), "state-1.safetensors", "is damaged", "checksum")


def test_a_flipped_bit_in_the_tables_of_the_first_stage(log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    values = ("--set", "method.embedding_size=4", "--set", "method.finetune_epochs=1")
    train(log_csv, folder, "--init", finished_run, *values, method="galore")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "status": "interrupted"}))
    flip(folder / "init.safetensors")
    refused(command("train", "--resume", folder), "init.safetensors", "is damaged")


def test_runs_from_before_there_were_checksums(run: Path, finished_run: Path) -> None:
    without_checksums(run)
    expected = caged.load(finished_run, device="cpu").recommend(k=5)
    assert caged.load(run, device="cpu").recommend(k=5).equals(expected)


@pytest.mark.parametrize(
    ("tensors", "word"),
    [
        ({"users": torch.zeros(60, 5), "items": torch.zeros(40, 5)}, r"'users' is [60, 5], not [60, 4]"),
        ({"users": torch.zeros(1, 4), "items": torch.zeros(1, 4)}, r"'users' is [1, 4]"),
        ({"other": torch.zeros(60, 4)}, "there is no 'users'"),
    ],
)
def test_a_model_without_checksums_that_does_not_fit(tensors: dict[str, torch.Tensor], word: str, run: Path) -> None:
    without_checksums(run)
    save_file(tensors, run / "checkpoint" / FILES[0])
    for arguments in READERS:
        refused_without_a_trace(run.parent, arguments, FILES[0], "does not fit", word)
