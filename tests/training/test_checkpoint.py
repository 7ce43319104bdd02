"""Tensors come back as they were saved, or there is one sentence about what is wrong with their file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from caged.errors import RunError
from caged.training.checkpoint import (
    CHECKSUMS,
    Checkpoint,
    fitting,
    load_checkpoint,
    load_tensors,
    save_checkpoint,
    save_tensors,
)

TENSORS = {
    "table": torch.arange(12, dtype=torch.float32).reshape(3, 4),
    "short": torch.arange(5, dtype=torch.bfloat16),
    "flags": torch.tensor([True, False]),
    "one": torch.tensor(7),
    "none": torch.empty(0, 3),
    "turned": torch.arange(6, dtype=torch.int32).reshape(2, 3).T,
}
META = {"finished": False, "progress": {"epochs_in_total": 1}, "scalars": {}}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_tensors_come_back(tmp_path: Path) -> None:
    checksum = save_tensors(tmp_path / "a.safetensors", TENSORS)
    assert same(load_tensors(tmp_path / "a.safetensors", checksum), TENSORS)


def test_the_same_tensors_are_the_same_file(tmp_path: Path) -> None:
    one = save_tensors(tmp_path / "one.safetensors", TENSORS)
    other = save_tensors(tmp_path / "other.safetensors", dict(reversed(TENSORS.items())))
    assert one == other
    assert (tmp_path / "one.safetensors").read_bytes() == (tmp_path / "other.safetensors").read_bytes()


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    """Of the tensors. In the header some flips leave another JSON of the same meaning, or damage a checksum only."""
    path = tmp_path / "a.safetensors"
    checksum = save_tensors(path, TENSORS)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        if place >= header:
            with pytest.raises(RunError, match=r"a\.safetensors is damaged: '\w+' no longer has its checksum"):
                load_tensors(path, checksum)
            continue
        try:
            found = load_tensors(path, checksum)
        except RunError:
            continue
        assert same(found, TENSORS)


def test_the_type_and_the_shape_belong_to_a_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"table": torch.zeros(2, 3)})
    with safe_open(path, framework="pt") as file:
        said = file.metadata()
    for other in (torch.zeros(3, 2), torch.zeros(2, 3, dtype=torch.int32)):
        save_file({"table": other}, path, metadata=said)
        with pytest.raises(RunError, match="'table' no longer has its checksum"):
            load_tensors(path)


def test_a_tensor_more_or_less(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors(path, TENSORS)
    with safe_open(path, framework="pt") as file:
        said = file.metadata()
    kept = load_file(path)
    save_file({name: value for name, value in kept.items() if name != "one"}, path, metadata=said)
    with pytest.raises(RunError, match="'one' no longer has its checksum"):
        load_tensors(path)
    save_file({**kept, "added": torch.zeros(1)}, path, metadata=said)
    with pytest.raises(RunError, match="'added' no longer has its checksum"):
        load_tensors(path)


def test_a_whole_file_of_something_else(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "one", "state-1", Checkpoint({"table": torch.zeros(2)}, META))
    save_checkpoint(tmp_path / "other", "state-1", Checkpoint({"table": torch.ones(2)}, META))
    (tmp_path / "other" / "state-1.safetensors").replace(tmp_path / "one" / "state-1.safetensors")
    stored = load_checkpoint(tmp_path / "one")
    assert stored is not None
    with pytest.raises(RunError, match="one of another run or of another moment"):
        stored.tensors()


def test_files_from_before_there_were_checksums(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "state-1", Checkpoint(TENSORS, META))
    manifest = json.loads((tmp_path / "checkpoint.json").read_text())
    del manifest["checksum"]
    (tmp_path / "checkpoint.json").write_text(json.dumps(manifest))
    save_file({name: value.contiguous() for name, value in TENSORS.items()}, tmp_path / "state-1.safetensors")
    with safe_open(tmp_path / "state-1.safetensors", framework="pt") as file:
        assert CHECKSUMS not in (file.metadata() or {})
    stored = load_checkpoint(tmp_path)
    assert stored is not None
    assert same(stored.tensors(), TENSORS)


def test_what_does_not_fit_is_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(RunError, match=r"a\.safetensors does not fit this run.*shape is 3\)"),
        fitting(tmp_path / "a.safetensors"),
    ):
        raise ValueError("shape is 3\nand more")
    with pytest.raises(RuntimeError, match="out of memory"), fitting(tmp_path / "a.safetensors"):
        raise RuntimeError("CUDA out of memory.")
