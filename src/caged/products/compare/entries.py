"""What `compare` reads: the folder of a run or of an audit, or a recorded result, as one `Entry`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from caged.config import to_dict
from caged.data.ids import Array
from caged.errors import RunError
from caged.evaluation.basis import Basis
from caged.evaluation.metrics import MetricKey, list_ks
from caged.evaluation.stored import StoredUsers, Users, UserTable
from caged.files import read_json
from caged.products.audit import read_audit
from caged.runs.catalogue import default_settings, operational_settings
from caged.runs.folder import METRICS, PER_USER, SUMS, RunFolder
from caged.runs.spec import DataConfig

SPLIT_SEED = "data.split_seed"  # another split shows in the fingerprints; it makes no other method


@dataclass(frozen=True, eq=False)
class Entry:
    """One run or audit, as far as a comparison needs it."""

    folder: Path  # of a recorded result: its file
    kind: Literal["run", "audit"]
    method: str  # of a run: its method, with the variant it was recorded under; of an audit: its name
    seed: int | None
    protocol: str | None
    dataset: str | None
    fingerprints: Mapping[str, str]  # of train, valid, test
    settings: Mapping[str, Any]  # dotted, without the seed and what only concerns the machine
    metrics: Mapping[str, float]
    basis: Basis | None = None  # None in folders of earlier versions
    floors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # where chance showed items

    @cached_property
    def keys(self) -> tuple[MetricKey, ...]:
        return tuple(MetricKey.parse(key) for key in self.metrics)

    @property
    def ks(self) -> tuple[int, ...]:
        """Cut-offs of the lists, in the order of the metrics."""
        return tuple(list_ks(self.keys))

    @property
    def has_users(self) -> bool:
        return (self.folder / PER_USER).exists()

    @property
    def has_sums(self) -> bool:
        return self.has_users and (self.folder / SUMS).exists()

    @cached_property
    def per_user(self) -> UserTable:
        return UserTable.of_file(self.folder / PER_USER)

    @cached_property
    def stored_users(self) -> StoredUsers:
        return StoredUsers(self.per_user, UserTable.of_file(self.folder / SUMS))

    def values_of(self, keys: Sequence[MetricKey]) -> UserValues:
        """The values of `keys` per user; a key that has none, or is not stored, is undefined for everybody."""
        users = self.per_user.users
        values = [self._values(key) for key in keys]
        return UserValues(users, np.stack(values, axis=1) if values else np.empty((len(users), 0)))

    def _values(self, key: MetricKey) -> Array:
        column = key.of_each_user
        member = key.user_group if key.chosen else "user_group"
        needed = (column, member) if key.user_group else (column,)
        if not all(name in self.per_user.schema.names for name in needed):
            return np.full(len(self.per_user.users), np.nan)
        return self.per_user.values_of(key)


@dataclass(frozen=True, eq=False)
class UserValues:
    """One row per user, one column per metric, NaN where undefined."""

    users: Users
    values: Array


def averaged(parts: Sequence[UserValues]) -> UserValues:
    """Per user the mean over runs, for the users of all of them; undefined where any run has no value."""
    first, *others = parts
    users, total = first.users, first.values
    for other in others:
        rows, places = users.shared_with(other.users)
        users, total = users.taken(rows), total[rows] + other.values[places]
    return UserValues(users, total / len(parts))


def read_entry(folder: Path) -> Entry:
    """A finished run or an audit, whichever lies in `folder`, or a result that --record wrote."""
    if folder.is_file() and folder.suffix == ".json":
        return read_result(folder)
    if not folder.is_dir():
        raise RunError(
            f"{folder} is neither a folder nor a recorded result; give folders that caged train or caged audit -o "
            "wrote, or files that caged train --record wrote"
        )
    if RunFolder.is_one(folder):
        return _read_run(RunFolder.read(folder))
    if (folder / METRICS).exists():
        return _read_audit(folder)
    raise RunError(
        f"{folder} holds neither run.json nor {METRICS}; give folders that caged train or caged audit -o wrote"
    )


def _read_run(stored_run: RunFolder) -> Entry:
    folder, run = stored_run.path, stored_run.run
    if run.status != "finished":
        raise RunError(
            f"the run in {folder} is not finished (status '{run.status}'), so it has no metrics; finish it with "
            f"caged train --resume {folder}"
        )
    spec = run.spec
    stored = read_audit(folder, stored_run)
    return Entry(
        folder=folder,
        kind="run",
        method=Path(run.record).parent.name if run.record else run.method_name,
        seed=spec["seed"],
        protocol=spec["protocol"],
        dataset=run.dataset["name"],
        fingerprints=run.dataset["fingerprints"],
        settings=_settings(spec, run.adjustment),
        metrics=stored.metrics,
        basis=stored.basis,
        floors=stored.floors,
    )


def read_result(file: Path) -> Entry:
    """A finished result that --record wrote; it is called after its folder, `<method>[-<variant>]`."""
    stored = read_json(file)
    if not isinstance(stored, dict) or not {"status", "spec", "dataset"} <= stored.keys():
        raise RunError(f"{file} is not a recorded result; give files that caged train --record wrote")
    if stored["status"] != "finished" or not stored.get("metrics"):
        raise RunError(
            f"the run recorded in {file} is not finished (status '{stored['status']}'), so it has no metrics; "
            "leave it out, or train again"
        )
    spec, dataset = stored["spec"], stored["dataset"]
    try:
        return Entry(
            folder=file,
            kind="run",
            method=file.resolve().parent.name,
            seed=spec["seed"],
            protocol=stored["protocol"],
            dataset=dataset["name"],
            fingerprints=dataset["fingerprints"],
            settings=_settings(spec, stored.get("adjustment")),
            metrics={key: math.nan if value is None else float(value) for key, value in stored["metrics"].items()},
            basis=Basis.from_json(stored.get("basis")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"the result in {file} is incomplete ({error}); restore the file") from error


def _settings(spec: Mapping[str, Any], adjustment: Mapping[str, Any] | None) -> dict[str, Any]:
    config = {section: values for section, values in spec["config"].items() if section != "eval"}
    config["data"] = {**to_dict(DataConfig()), **config["data"]}
    settings = default_settings(spec["method"])  # a run may be older than some options
    settings |= {f"{section}.{key}": value for section, values in config.items() for key, value in values.items()}
    settings |= _adjustment_settings(adjustment)
    ignored = {SPLIT_SEED, *operational_settings(spec["method"])}
    return {key: value for key, value in settings.items() if key not in ignored}


def _adjustment_settings(adjustment: Mapping[str, Any] | None) -> dict[str, Any]:
    """The rule where validation chose the strength, so that seeds with other strengths are runs of one method."""
    if adjustment is None:
        return {}
    decisive = "keep" if "keep" in adjustment else "strength"
    return {f"adjust.{key}": adjustment[key] for key in ("form", decisive)}


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
        basis=stored.basis,
        floors=stored.floors,
    )
