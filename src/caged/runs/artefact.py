"""What is needed to recommend, and nothing more: the model, its identifiers, and what each user has seen.

A folder with `checkpoint.json` (method and configuration), `model.safetensors` (what the method needs of its state) and
`training_data.safetensors` (identifiers, training pairs, validation pairs). It is the `checkpoint/` of a finished run,
and what `Recommender.save` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from caged.config import build, to_dict
from caged.data import IdMap, Interactions
from caged.data.seen import Seen
from caged.errors import RunError
from caged.evaluation.adjust import Adjustment
from caged.evaluation.adjust.of_scores import adjusted
from caged.graph import BipartiteGraph
from caged.models import Method, Scorer, State, registered
from caged.seeding import Generators
from caged.training import Checkpoint, Decisions, TrainConfig, load_checkpoint, save_checkpoint
from caged.training.checkpoint import StoredCheckpoint, fitting, load_tensors, save_tensors

DATA_FILE = "training_data.safetensors"


class TrainedWith(NamedTuple):
    """What training depended on beside the method's own options."""

    seed: int = 1
    train: TrainConfig = TrainConfig()


@dataclass(frozen=True, eq=False)
class Artefact:
    """A trained method with the interactions it was trained and validated on."""

    name: str
    method: Method[Any]
    train: Interactions
    valid: Interactions | None
    device: torch.device
    trained_with: TrainedWith | None = None  # as `Recommender.save` keeps it; a run has it in run.json
    adjustment: Adjustment | None = None  # what was taken out of the scores after training
    decisions: Decisions | None = None  # of validation; None where the model was saved before they were kept

    @property
    def seen(self) -> Seen:
        """What is not recommended again."""
        return Seen(self.train, self.valid)

    def scorer(self) -> Scorer:
        """The model as it recommends."""
        scorer = self.method.scorer()
        return scorer if self.adjustment is None else adjusted(scorer, self.train, self.adjustment)


def save_model(
    folder: Path,
    name: str,
    method: Method[Any],
    progress: dict[str, Any],
    *,
    training_data: str,
    trained_with: TrainedWith | None = None,
    adjustment: Adjustment | None = None,
) -> None:
    """Store the trained method; the training states before it are dropped.

    `training_data` is the checksum of the file that `save_training_data` wrote beside it. Where several ranks hold the
    tables, the first of them saves, and the others call `columns.joined` as it does.
    """
    state = method.serving_state()
    meta = {
        "finished": True,
        "method": name,
        "config": to_dict(method.config),
        "scalars": state.scalars,
        "progress": progress,
        "training_data": training_data,
        **({"seed": trained_with.seed, "train": to_dict(trained_with.train)} if trained_with else {}),
        **({} if adjustment is None else {"adjustment": vars(adjustment)}),
    }
    tensors = method.columns.joined(state.tensors, method.by_columns or ())
    save_checkpoint(folder, "model", Checkpoint(tensors, meta))


def save_training_data(folder: Path, train: Interactions, valid: Interactions | None) -> str:
    """Store identifiers and pairs; the checksum of their file."""
    tensors = {
        **_pack_ids("user_ids", train.user_ids),
        **_pack_ids("item_ids", train.item_ids),
        **_pack_pairs("train", train),
        **(_pack_pairs("valid", valid) if valid is not None else {}),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot create {folder}: {error.strerror}; choose a folder that you may write to") from error
    return save_tensors(folder / DATA_FILE, tensors)


def load_artefact(folder: Path, device: torch.device) -> Artefact:
    """From a finished run, its `checkpoint/`, or a folder written by `Recommender.save`."""
    folder = folder / "checkpoint" if (folder / "checkpoint").is_dir() else folder
    stored = load_checkpoint(folder)
    if stored is None:
        raise RunError(f"{folder} holds no trained model (no checkpoint.json); give the folder of a finished run")
    if not stored.finished:
        raise RunError(
            f"the run in {folder.parent} is not finished; finish it with caged train --resume {folder.parent}"
        )
    data = load_tensors(folder / DATA_FILE, stored.meta.get("training_data"))
    with fitting(folder / DATA_FILE):
        user_ids, item_ids = _unpack_ids("user_ids", data), _unpack_ids("item_ids", data)
        train = _unpack_pairs("train", data, user_ids, item_ids)
        valid = _unpack_pairs("valid", data, user_ids, item_ids) if "valid.items" in data else None
    known = registered(stored.meta["method"])
    method = known.method(build(known.config, stored.meta["config"], "method"))
    method.prepare(BipartiteGraph.from_interactions(train, device), Generators(0, device))
    load_serving(method, stored)
    stated, decided = stored.meta.get("adjustment"), stored.meta["progress"].get("decisions")
    return Artefact(
        known.name,
        method,
        train,
        valid,
        device,
        _trained_with(stored.meta),
        adjustment=None if stated is None else Adjustment(**stated),
        decisions=None if decided is None else Decisions.from_json(decided),
    )


def load_serving(method: Method[Any], stored: StoredCheckpoint) -> None:
    """Give a prepared method the state that it was saved with."""
    state = State(stored.tensors(), stored.meta["scalars"])
    with fitting(stored.file):
        method.load_serving_state(state)


def _trained_with(meta: Mapping[str, Any]) -> TrainedWith | None:
    return TrainedWith(meta["seed"], build(TrainConfig, meta["train"], "train")) if "seed" in meta else None


def _pack_ids(name: str, ids: IdMap) -> dict[str, Tensor]:
    """Integers as they are; text as UTF-8 bytes and offsets."""
    if ids.are_integers:
        return {f"{name}.integers": torch.from_numpy(ids.values.to_numpy(zero_copy_only=False).copy())}
    _, offsets, content = pa.concat_arrays([ids.values]).buffers()  # concat drops any slice offset
    return {
        f"{name}.offsets": torch.from_numpy(np.frombuffer(offsets, np.int64)[: len(ids) + 1].copy()),
        f"{name}.utf8": torch.from_numpy(np.frombuffer(content or b"", np.uint8).copy()),
    }


def _unpack_ids(name: str, data: dict[str, Tensor]) -> IdMap:
    if f"{name}.integers" in data:
        return IdMap(pa.array(data[f"{name}.integers"].numpy()))
    offsets, content = data[f"{name}.offsets"].numpy(), data[f"{name}.utf8"].numpy()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return IdMap(pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers))


def _pack_pairs(name: str, pairs: Interactions) -> dict[str, Tensor]:
    offsets, items = pairs.by_user()
    users = np.repeat(np.arange(pairs.user_count, dtype=np.int32), np.diff(offsets))
    return {f"{name}.users": torch.from_numpy(users), f"{name}.items": torch.from_numpy(items.astype(np.int32))}


def _unpack_pairs(name: str, data: dict[str, Tensor], user_ids: IdMap, item_ids: IdMap) -> Interactions:
    users = data[f"{name}.users"].numpy().astype(np.int64)
    items = data[f"{name}.items"].numpy().astype(np.int64)
    return Interactions(user_ids, item_ids, users, items)
