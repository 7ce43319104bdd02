"""What `compare` reads: the folder of a run or of an audit as one `Entry`, and its values per user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from caged.data.ids import Array
from caged.errors import RunError
from caged.evaluation.keys import MetricKey
from caged.products.audit.folder import METRICS, PER_USER, SUMS, read_audit
from caged.runs.execute import read_run

# What may differ between two runs of the same method without making them different methods.
OPERATIONAL = (
    *("train.checkpoint_seconds", "train.backend", "train.precision", "train.capture", "data.split_seed"),
    *("method.estimator_capture", "method.adv_capture"),
)


@dataclass(frozen=True, eq=False)
class Entry:
    """One run or audit, as far as a comparison needs it."""

    folder: Path
    kind: Literal["run", "audit"]
    method: str  # of a run: its method, with the variant it was recorded under; of an audit: its name
    seed: int | None
    protocol: str | None
    dataset: str | None
    fingerprints: Mapping[str, str]  # of train, valid, test
    settings: Mapping[str, Any]  # dotted, without the seed and what only concerns the machine
    metrics: Mapping[str, float]
    users: Mapping[str, int]

    @property
    def ks(self) -> tuple[int, ...]:
        """Cut-offs in the order of the metrics."""
        return tuple(dict.fromkeys(MetricKey.parse(key).k for key in self.metrics))

    @property
    def has_users(self) -> bool:
        return (self.folder / PER_USER).exists()

    @property
    def has_sums(self) -> bool:
        return self.has_users and (self.folder / SUMS).exists()

    def per_user(self, keys: Sequence[str]) -> UserValues:
        """The values of `keys` per user; a key that has none, or is not stored, is undefined for everybody."""
        path = self.folder / PER_USER
        stored = read_columns(path)
        wanted = {key: _column_of(key, stored) for key in keys}
        table = read_table(path, [name for name in stored if name in ("user_id", "user_group", *wanted.values())])
        values = [_values(table, key, column) for key, column in wanted.items()]
        return UserValues(
            table["user_id"].combine_chunks(), np.stack(values, axis=1) if values else np.empty((table.num_rows, 0))
        )


def read_columns(path: Path) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> RunError:
    return RunError(f"{path} is not readable ({error}); restore it, or evaluate again")


@dataclass(frozen=True, eq=False)
class UserValues:
    """One row per user, one column per metric, NaN where undefined."""

    user_ids: pa.Array
    values: Array

    def of(self, other: UserValues) -> tuple[Array, Array]:
        """Rows of this one and of `other` that belong to the same users, in the order of this one."""
        mine, theirs = _same_type(self.user_ids, other.user_ids)
        place = pc.index_in(mine, value_set=theirs)
        rows = np.flatnonzero(pc.is_valid(place).to_numpy(zero_copy_only=False))
        return rows, place.take(pa.array(rows)).to_numpy(zero_copy_only=False).astype(np.int64)


def averaged(parts: Sequence[UserValues]) -> UserValues:
    """Per user the mean over runs, for the users of all of them; undefined where any run has no value."""
    first, *others = parts
    ids, total = first.user_ids, first.values
    for other in others:
        rows, places = UserValues(ids, total).of(other)
        ids, total = ids.take(pa.array(rows)), total[rows] + other.values[places]
    return UserValues(ids, total / len(parts))


def read_entry(folder: Path) -> Entry:
    """A finished run or an audit, whichever lies in `folder`."""
    if not folder.is_dir():
        raise RunError(f"{folder} is not a folder; give folders that caged train or caged audit -o wrote")
    if (folder / "run.json").exists():
        return _read_run(folder)
    if (folder / METRICS).exists():
        return _read_audit(folder)
    raise RunError(
        f"{folder} holds neither run.json nor {METRICS}; give folders that caged train or caged audit -o wrote"
    )


def _read_run(folder: Path) -> Entry:
    run = read_run(folder)
    if run["status"] != "finished":
        raise RunError(
            f"the run in {folder} is not finished (status '{run['status']}'), so it has no metrics; finish it with "
            f"caged train --resume {folder}"
        )
    spec = run["spec"]
    config = {section: values for section, values in spec["config"].items() if section != "eval"}
    settings = {f"{section}.{key}": value for section, values in config.items() for key, value in values.items()}
    stored = read_audit(folder)
    return Entry(
        folder=folder,
        kind="run",
        method=Path(run["record"]).parent.name if run.get("record") else str(spec["method"]),
        seed=spec["seed"],
        protocol=spec["protocol"],
        dataset=run["dataset"]["name"],
        fingerprints=run["dataset"]["fingerprints"],
        settings={key: value for key, value in settings.items() if key not in OPERATIONAL},
        metrics=stored.metrics,
        users=stored.users,
    )


def _read_audit(folder: Path) -> Entry:
    stored = read_audit(folder)
    return Entry(
        folder=folder,
        kind="audit",
        method=stored.name,
        seed=None,
        protocol=stored.protocol,
        dataset=None,
        fingerprints=stored.fingerprints,
        settings={},
        metrics=stored.metrics,
        users=stored.users,
    )


def _column_of(key: str, stored: Sequence[str]) -> str | None:
    """The column with the values of a key; those of a user group are the values of its users."""
    parsed = MetricKey.parse(key)
    if parsed.user_group is None:
        return key if key in stored else None
    everybody = str(MetricKey(parsed.name, parsed.k))
    return everybody if everybody in stored and "user_group" in stored else None


def _values(table: pa.Table, key: str, column: str | None) -> Array:
    if column is None:
        return np.full(table.num_rows, np.nan)
    values = np.asarray(table[column].to_numpy(), dtype=np.float64)
    group = MetricKey.parse(key).user_group
    if group is None:
        return values
    member = pc.fill_null(pc.equal(table["user_group"], group), False).to_numpy()
    return np.where(member, values, np.nan)


def _same_type(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Identifiers that were read as numbers on one side and as text on the other are compared as text."""
    if a.type == b.type:
        return a, b
    if pa.types.is_integer(a.type) and pa.types.is_integer(b.type):
        return a.cast(pa.int64()), b.cast(pa.int64())
    return a.cast(pa.large_string()), b.cast(pa.large_string())
