"""Checkpoints: one safetensors file and one JSON file, never pickle.

`checkpoint.json` is the commit point. It names the tensor file it belongs to, and is replaced only after that file is
complete; files that no `checkpoint.json` names are leftovers and are removed. A process killed at any moment leaves
either the old checkpoint or the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from caged.errors import RunError
from caged.files import read_json, replacing, write_json

MANIFEST = "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    """What is saved."""

    tensors: dict[str, Tensor]
    meta: dict[str, Any]


@dataclass(frozen=True)
class StoredCheckpoint:
    """What was saved; its manifest is read, its tensors are read when they are asked for."""

    meta: dict[str, Any]
    file: Path

    @property
    def finished(self) -> bool:
        return bool(self.meta["finished"])

    @property
    def epochs(self) -> int:
        """How many of them an unfinished training has behind it."""
        return int(self.meta["progress"]["epochs_in_total"])

    def tensors(self) -> dict[str, Tensor]:
        return load_tensors(self.file)


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors to `path`, complete or not at all."""
    on_host = {name: value.detach().to("cpu").contiguous() for name, value in tensors.items()}
    with replacing(path) as temporary:
        try:
            save_file(on_host, temporary)
        except SafetensorError as error:
            raise OSError(None, str(error)) from error
        temporary.chmod(0o644)  # safetensors creates files that only their owner may read


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise RunError(
            f"{path} is missing, truncated or not a safetensors file ({error}); restore it, or train again"
        ) from error


def save_checkpoint(folder: Path, name: str, checkpoint: Checkpoint) -> None:
    """Store `checkpoint` as `<name>.safetensors` + manifest and drop the files of the previous one."""
    file = f"{name}.safetensors"
    previous = set(_named_files(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot create {folder}: {error.strerror}; choose a folder that you may write to") from error
    save_tensors(folder / file, checkpoint.tensors)
    write_json(folder / MANIFEST, {"tensors": file, **checkpoint.meta})
    for leftover in previous - {file}:
        (folder / leftover).unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> StoredCheckpoint | None:
    """The last complete checkpoint, or None where there is none yet."""
    manifest = folder / MANIFEST
    if not manifest.exists():
        return None
    meta = read_json(manifest)
    if not isinstance(meta, dict) or not _needed(finished=bool(meta.get("finished"))) <= meta.keys():
        raise RunError(f"{manifest} is not what caged writes there; restore it, or train again")
    return StoredCheckpoint(meta, folder / meta.pop("tensors"))


def _needed(*, finished: bool) -> set[str]:
    """Keys of a manifest."""
    return {"tensors", "finished", "progress", "scalars"} | ({"method", "config"} if finished else set())


def _named_files(folder: Path) -> list[str]:
    """Tensor files of training states, committed or left over by a killed process."""
    return [path.name for path in folder.glob("*.safetensors") if path.name.startswith(("state-", "model"))]


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and step counts as flat tensors: `<parameter number>.<name>`."""
    return {
        f"{index}.{name}": value
        for index, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def load_optimizer_state(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": value for name, value in tensors.items()}


def unprefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}/"
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
