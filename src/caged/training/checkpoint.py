"""Checkpoints: one safetensors file and one JSON file, never pickle.

`checkpoint.json` is the commit point. It names the tensor file it belongs to, and is replaced only after that file is
complete; files that no `checkpoint.json` names are leftovers and are removed. A process killed at any moment leaves
either the old checkpoint or the new one.

Every tensor file carries a checksum of each tensor, and `checkpoint.json` a checksum of these, so that neither a
flipped byte nor a file of another run is taken for what was saved. Files from before there were checksums are read as
they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from caged.errors import RunError, memory_error
from caged.files import read_json, replacing, write_json

MANIFEST = "checkpoint.json"
CHECKSUMS = "checksums"  # in the metadata of a tensor file; one entry, since safetensors keeps no order among several


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
    checksum: str | None = None  # of the tensor file

    @property
    def finished(self) -> bool:
        return bool(self.meta["finished"])

    @property
    def replays(self) -> bool:
        """Whether it is of a training that replays the decisions of another."""
        return bool(self.meta.get("replays"))

    @property
    def epochs(self) -> int:
        """How many of them an unfinished training has behind it."""
        return int(self.meta["progress"]["epochs_in_total"])

    def tensors(self) -> dict[str, Tensor]:
        return load_tensors(self.file, self.checksum)


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> str:
    """Write tensors to `path`, complete or not at all. The checksum of the file is what `load_tensors` may ask for."""
    on_host = {name: value.detach().to("cpu").contiguous() for name, value in tensors.items()}
    checksums = _checksums(on_host)
    with replacing(path) as temporary:
        try:
            save_file(on_host, temporary, metadata={CHECKSUMS: checksums})
        except SafetensorError as error:
            raise OSError(None, str(error)) from error
        temporary.chmod(0o644)  # safetensors creates files that only their owner may read
    return _sha256(checksums.encode())


def load_tensors(path: Path, checksum: str | None = None) -> dict[str, Tensor]:
    """What `save_tensors` wrote; with `checksum`, only if it is that very file."""
    try:
        with safe_open(path, framework="pt") as file:
            said = (file.metadata() or {}).get(CHECKSUMS)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except (SafetensorError, OSError) as error:
        raise RunError(
            f"{path} is missing, truncated or not a safetensors file ({error}); restore it, or train again"
        ) from error
    if checksum is not None and (said is None or _sha256(said.encode()) != checksum):
        raise RunError(
            f"{path} is not the file that was saved here, but one of another run or of another moment; restore it, or "
            f"train again"
        )
    if said is not None:
        _verify(path, said, tensors)
    return tensors


def _checksums(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of each tensor by name, as JSON with sorted keys."""
    return json.dumps({name: _checksum(value) for name, value in tensors.items()}, sort_keys=True)


def _checksum(tensor: Tensor) -> str:
    content = tensor.reshape(-1).view(torch.uint8).numpy()
    return _sha256(f"{tensor.dtype} {list(tensor.shape)}\n".encode(), content)


def _sha256(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _verify(path: Path, said: str, tensors: Mapping[str, Tensor]) -> None:
    found = _checksums(tensors)
    if found == said:
        return
    saved, here = json.loads(said), json.loads(found)
    different = min(name for name in saved.keys() | here.keys() if saved.get(name) != here.get(name))
    raise RunError(f"{path} is damaged: '{different}' no longer has its checksum; restore the file, or train again")


@contextmanager
def fitting(path: Path) -> Iterator[None]:
    """Whatever goes wrong while a method takes over the tensors of `path`: they are of something else."""
    try:
        yield
    except (KeyError, ValueError, TypeError, IndexError, RuntimeError) as error:
        if memory_error(error):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(
            f"{path} does not fit this run, its method and its data ({reason}); restore the file, or train again"
        ) from error


def save_checkpoint(folder: Path, name: str, checkpoint: Checkpoint) -> None:
    """Store `checkpoint` as `<name>.safetensors` + manifest and drop the files of the previous one."""
    file = f"{name}.safetensors"
    previous = set(_named_files(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot create {folder}: {error.strerror}; choose a folder that you may write to") from error
    checksum = save_tensors(folder / file, checkpoint.tensors)
    write_json(folder / MANIFEST, {"tensors": file, "checksum": checksum, **checkpoint.meta})
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
    return StoredCheckpoint(meta, folder / meta.pop("tensors"), meta.pop("checksum", None))


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


def moments_in(state: Mapping[str, Tensor]) -> list[str]:
    """What of `optimizer_state` has the shape of its parameter: all but the step counts."""
    return [name for name in state if not name.endswith(".step")]


def prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": value for name, value in tensors.items()}


def unprefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}/"
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
