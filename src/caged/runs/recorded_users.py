"""What each user got, beside a record: `seed<k>.users.parquet`, so that recorded runs can be compared user by user.

It holds Recall and NDCG at the first cut-off, over all, popular and niche items; under `paper` the NDCG of the printed
tables. NDCG is rounded to three decimals, which halves the file and is far below what tells users apart: 128 kB for
37,501 users, 46 kB for 6,040. Users stand in the order of their rows and are not named, because records are shared. The
record has a checksum of their identifiers, so that files are paired only if they are about the same users, and one of
the file itself.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caged.data.ids import Array
from caged.errors import RunError
from caged.evaluation.basis import checksum_of_ids
from caged.evaluation.metrics import MetricKey
from caged.files import write_bytes

SUFFIX = ".users.parquet"
_GROUPS = (None, "popular", "niche")
_DECIMALS = 3


def users_file(record: Path) -> Path:
    """
    >>> users_file(Path("results/log/honest/lightgcn/seed1.json")).name
    'seed1.users.parquet'
    """
    return record.with_suffix(SUFFIX)


def write_recorded_users(record: Path, per_user: Path, k: int) -> dict[str, Any]:
    """From the table per user of a run folder; returns what the record says about the file."""
    stored = pq.read_table(per_user)
    ranked = "ndcg_hits100" if MetricKey("ndcg_hits100", k) in stored.column_names else "ndcg"
    recalls, gains = ([MetricKey(name, k, group) for group in _GROUPS] for name in ("recall", ranked))
    columns = {name: stored[name].cast(pa.float32()) for name in recalls if name in stored.column_names}
    columns |= {name: _rounded(stored[name]) for name in gains if name in stored.column_names}
    handle = io.BytesIO()
    pq.write_table(pa.table(columns), handle, compression="zstd", compression_level=19)
    content = handle.getvalue()
    write_bytes(users_file(record), content)
    ids = checksum_of_ids(stored["user_id"].combine_chunks())
    return {"users": stored.num_rows, "ids": ids, "sha256": _sum_of(content)}


def has_recorded_users(record: Path, content: Mapping[str, Any]) -> bool:
    """Whether the file stands beside the record. A record that lost it is still a record, of which less is known."""
    return "per_user" in content and users_file(record).is_file()


def read_recorded_users(record: Path, about: Mapping[str, Any]) -> dict[str, Array]:
    """The values of each metric, a row per user, NaN where undefined; refused where the file is not the one."""
    path = users_file(record)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; {record} was recorded with it, so restore it") from error
    if _sum_of(content) != about["sha256"]:
        raise RunError(f"{path} is not the file that {record} was recorded with; restore both")
    # Without threads: one of Arrow's that lets go of Python's bytes while Python ends aborts the process.
    with pq.ParquetFile(pa.BufferReader(content)) as file:
        table = file.read(use_threads=False)
    return {name: np.asarray(table[name].to_numpy(), dtype=np.float64) for name in table.column_names}


def _rounded(values: pa.ChunkedArray) -> pa.Array:
    return pa.array(np.round(values.to_numpy(), _DECIMALS).astype(np.float32))


def _sum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
