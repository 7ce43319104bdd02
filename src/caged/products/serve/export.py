"""From a trained model to an artefact. Needs torch, unlike serving."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from caged.data.ids import Array, IdMap
from caged.data.seen import find
from caged.errors import ConfigError
from caged.evaluation.adjust.of_scores import adjusted_vectors, score_spread
from caged.files import new_folder, write_json
from caged.models import Explainable, FoldsIn, Method, WeighsItems
from caged.products.adjust import Outcome
from caged.products.serve.index import library
from caged.products.serve.index_build import add_index, wants_index
from caged.products.serve.manifest import MANIFEST, FoldInAs, Kind, Manifest, checksum
from caged.products.serve.model import ITEMS, USERS, as_float32
from caged.products.serve.moments import Moments
from caged.products.serve.source import ModelSource, source_of
from caged.runs.artefact import Artefact
from caged.runs.environment import resolve_device

DTYPES = ("float32", "bfloat16")
INDEXES = ("auto", "none")


class _Parts(NamedTuple):
    """What of a model depends on its kind."""

    kind: Kind
    arrays: dict[str, Array]
    fold_in: FoldInAs | None
    refused: str


def artefact_of_run(
    run: Path, out: Path, *, dtype: str = "float32", with_price: bool = True, index: str = "auto", device: str = "auto"
) -> Manifest:
    """Of a finished run, or of a model that `Recommender.save` wrote."""
    source = source_of(run, resolve_device(device))
    return export_artefact(source, out, dtype=dtype, price=source.price() if with_price else None, index=index)


def export_artefact(
    source: ModelSource,
    out: Path,
    *,
    dtype: str = "float32",
    price: Outcome | None = None,
    index: str = "auto",
) -> Manifest:
    """All files or no folder; `price` is what the notches of the knob cost, see `products.adjust`.

    `index`: "auto" builds one for large catalogues where faiss is installed, "none" builds none.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"the type of vectors is '{dtype}'; allowed: {', '.join(DTYPES)}")
    if index not in INDEXES:
        raise ConfigError(f"the index is '{index}'; allowed: {', '.join(INDEXES)}")
    fitted = source.fitted
    train = fitted.train
    parts = _parts(fitted, dtype)
    offsets, seen = fitted.seen.by_user()
    arrays = {**parts.arrays, "seen_offsets": np.asarray(offsets, np.int64), "seen_items": seen.astype(np.int32)}
    arrays["seen_trained"] = find(train.keys, fitted.seen.keys) >= 0  # the rest validated it
    items = _item_table(train.item_ids, train.item_degrees, source.item_table)
    with new_folder(out) as temporary:
        for name, values in arrays.items():
            np.save(temporary / f"{name}.npy", values, allow_pickle=False)
        _write_arrow(temporary / USERS, pa.table({"user_id": train.user_ids.values}))
        _write_arrow(temporary / ITEMS, items)
        manifest = Manifest(
            method=source.name,
            kind=parts.kind,
            users=train.user_count,
            items=train.item_count,
            width=int(arrays["item_vectors"].shape[1]) if parts.kind == "vectors" else 0,
            dtype=dtype,  # type: ignore[arg-type]  # checked above
            less_popular=_knob(fitted),
            fold_in=parts.fold_in,
            fold_in_refused=parts.refused,
            attributes={name: str(items[name].type) for name in items.column_names[2:]},
            origin=source.origin,
            audit=source.audit,
            price={} if price is None else price.to_json(),
            files={file.name: checksum(file) for file in sorted(temporary.iterdir())},
        )
        write_json(temporary / MANIFEST, manifest.to_json())
        if index == "auto" and wants_index(manifest) and library() is not None:
            manifest = add_index(temporary)
    return manifest


def _knob(fitted: Artefact) -> float:
    """`degree` is what the knob does; `norm` is in the vectors already."""
    adjustment = fitted.adjustment
    return 0.0 if adjustment is None or adjustment.form != "degree" else adjustment.strength


def _parts(fitted: Artefact, dtype: str) -> _Parts:
    method = fitted.method
    if isinstance(method, WeighsItems):
        stored = {name: _numpy(array) for name, array in method.item_arrays().items()}
        return _Parts("item_weights" if "item_weights" in stored else "neighbours", stored, None, "")
    vectors = method.scorer().vectors
    if vectors is None:
        raise ConfigError(f"{fitted.name} has neither vectors nor item-item weights, so there is nothing to serve")
    if fitted.adjustment is not None and fitted.adjustment.form == "norm":
        vectors = adjusted_vectors(vectors, fitted.train, fitted.adjustment)
    arrays = {
        "user_vectors": _stored(vectors.users, dtype),
        "item_vectors": _stored(vectors.items, dtype),
        "user_spread": score_spread(vectors, fitted.train).float().cpu().numpy(),
    }
    arrays["item_moments"] = Moments.of(as_float32(arrays["item_vectors"])).table
    fold_in, refused = _fold_in(method, fitted.name)
    if fold_in is None:
        return _Parts("vectors", arrays, None, refused)
    arrays |= {"fold_table": _numpy(fold_in.table), "fold_weights": _numpy(fold_in.weights)}
    if fold_in.by_cosine and isinstance(method, Explainable):
        with torch.no_grad():
            arrays["user_lengths"] = _numpy(method.history_encoder()().users.norm(dim=1))
    return _Parts("vectors", arrays, FoldInAs(fold_in.exponent, fold_in.by_cosine, fold_in.note), "")


def _fold_in(method: Method[Any], name: str) -> tuple[Any, str]:
    if not isinstance(method, FoldsIn):
        return None, f"{name} has no way to give new people a vector; ask for people it knows, or use lightgcn"
    try:
        return method.fold_in(), ""
    except ConfigError as error:
        return None, str(error)


def _stored(table: Tensor, dtype: str) -> Array:
    if dtype == "float32":
        return _numpy(table.float())
    return _numpy(table.detach().to(torch.bfloat16).view(torch.int16)).view(np.uint16)


def _numpy(table: Tensor) -> Array:
    return np.ascontiguousarray(table.detach().cpu().numpy())


def _item_table(ids: IdMap, degrees: Array, described: pa.Table | None) -> pa.Table:
    """`item_id, degree`, then title and whatever else the data says about items."""
    table = pa.table({"item_id": ids.values, "degree": degrees.astype(np.int64)})
    if described is None or "item_id" not in described.column_names:
        return table
    rows = ids.rows(described["item_id"].combine_chunks())
    place = np.full(len(ids), -1)
    place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    taken = pa.array(place, mask=place < 0)
    for name in described.column_names:
        if name not in table.column_names:
            table = table.append_column(name, described[name].combine_chunks().take(taken))
    return table


def _write_arrow(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
