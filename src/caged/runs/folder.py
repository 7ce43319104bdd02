"""The folder of a run, and what its `run.json` says.

run.json               specification, versions, hardware, fingerprints, timings, status
history.jsonl          a line per epoch
history_refit.jsonl    the same of the second training, only with --refit
metrics.json           protocol and metrics of the test part
per_user.parquet       the same per user
sums.parquet           what each user adds to the pooled metrics
recommendations.parquet  user_id, item_id, score, rank
checkpoint/            see `training.checkpoint` and `runs.artefact`
weights/               only where asked for, see `runs.saved_weights`
init.safetensors       only with --init, see `runs.initial`
run.lock               while a process works on the run, see `runs.lock`
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from caged.data.source import ITEM_TABLE, item_titles
from caged.errors import CagedError, RunError, memory_error
from caged.evaluation.stored import write_user_table
from caged.files import (
    checksum_of,
    make_output_folder,
    make_parent,
    read_json,
    remove_leftovers,
    replacing,
    write_json,
    write_sealed_json,
)
from caged.runs.history import learning_curve
from caged.runs.loading import DatasetFacts, Loaded, load_data
from caged.runs.lock import holds_a_lock_alone, locked, refuse_held
from caged.runs.recorded_users import write_recorded_users
from caged.runs.results import write_result
from caged.runs.spec import ExperimentSpec

FORMAT = 1  # of run.json
RUN, METRICS = "run.json", "metrics.json"
PER_USER, SUMS, RECOMMENDATIONS = "per_user.parquet", "sums.parquet", "recommendations.parquet"
WEIGHTS, DENSITIES = "weights", "densities.json"
NEEDED = ("status", "spec", "dataset", "hardware", "threads", "resumed", "seconds", "data_path")
# Left out of run.json where there is nothing to say.
WHERE_PRESENT = (
    "memory",
    "ranks",
    "save_weights",
    "no_report",
    "init",
    "adjustment",
    "training",
    "error",
    "ended",
    "checksums",
)
# What a run is, and stays. Not the place of its data: that may move, and the fingerprints tell whether it is the same.
FIXED = ("spec", "dataset", "hardware", "threads", "save_weights", "init", "adjustment")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(kw_only=True)
class Run:
    """What `run.json` holds, in its order. It changes while the run goes on."""

    status: Literal["running", "interrupted", "failed", "finished"] = "running"
    command: str = ""
    spec: dict[str, Any]  # as JSON: a run can be listed and compared where its method is not installed
    dataset: DatasetFacts
    versions: dict[str, str] = field(default_factory=dict)
    hardware: dict[str, Any]
    threads: int
    started: str = field(default_factory=now)
    resumed: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] | None = None  # the most that was used, in GiB; None in runs from before it was counted
    ranks: dict[str, Any] | None = None  # devices and backend of the last start or resume, where there were several
    data_path: str | None = None  # where a resumed run finds its data; None: by the name of the dataset
    record: str | None = None  # the file below --record that lists this run
    save_weights: bool = False
    no_report: bool = False  # the page was not wanted
    init: dict[str, Any] | None = None
    adjustment: dict[str, Any] | None = None  # what was taken out after training, and how it was chosen
    training: dict[str, Any] | None = None
    error: str | None = None
    ended: str | None = None
    checksums: dict[str, str] | None = None  # of what stays as it is; None in runs from before there were any

    @property
    def method_name(self) -> str:
        """The method, and that popularity was taken out of it where it was."""
        return str(self.spec["method"]) if self.adjustment is None else f"{self.spec['method']} adjusted"

    def to_json(self) -> dict[str, Any]:
        nothing = {key for key in WHERE_PRESENT if getattr(self, key) in (None, False)}
        return {"format": FORMAT, **{key: value for key, value in vars(self).items() if key not in nothing}}

    @classmethod
    def from_json(cls, values: Any, where: Path) -> Run:
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise RunError(f"{where} has another format than {FORMAT}; use the version that wrote it")
        missing = [key for key in NEEDED if key not in values]
        if missing:
            raise RunError(f"{where} lacks '{missing[0]}'; restore the file, or start a new run")
        run = cls(**{known.name: values[known.name] for known in fields(cls) if known.name in values})
        for name, checksum in (run.checksums or {}).items():
            if run.checksums_now().get(name) != checksum:
                raise RunError(
                    f"'{name}' in {where} was edited since the run started: it no longer has its checksum; restore the "
                    f"file, or start a new run with the values that you want"
                )
        return run

    def checksums_now(self) -> dict[str, str]:
        """Of each thing that stays as it is."""
        return {name: checksum_of(getattr(self, name)) for name in FIXED}

    @contextmanager
    def status_kept(self) -> Iterator[None]:
        """Whatever ends the work inside, the status and the time it took are right afterwards."""
        from caged.training import Interrupted  # here, because reading a run needs no torch

        begun = time.perf_counter()
        spent_before = self.seconds.get("total", 0.0)
        try:
            yield
        except (Interrupted, KeyboardInterrupt):
            self.status = "interrupted"
            raise
        except CagedError as error:
            self.status, self.error = "failed", str(error)
            raise
        except Exception as error:
            told = memory_error(error)
            self.status, self.error = "failed", str(told) if told else f"{type(error).__name__}: {error}"
            if told:
                raise told from error
            raise
        else:
            self.status = "finished"
        finally:
            self.seconds["total"] = spent_before + time.perf_counter() - begun
            self.ended = now()


@dataclass(eq=False)
class RunFolder:
    """A run on disk. `run.json` is read once, by `read`, and written by `store`."""

    path: Path
    run: Run
    metrics: dict[str, Any] | None = None  # what metrics.json holds, once the run was evaluated

    @classmethod
    def read(cls, path: Path) -> RunFolder:
        if not cls.is_one(path):
            raise RunError(f"{path} is not a run folder (it has no {RUN}); give a folder that caged train wrote")
        return cls(path, Run.from_json(read_json(path / RUN), path / RUN))

    @classmethod
    @contextmanager
    def create(cls, path: Path, run: Run) -> Iterator[RunFolder]:
        """A new folder, locked until the work in it is done."""
        refuse_held(path)
        with locked(path if holds_a_lock_alone(path) else make_output_folder(path)):
            if cls.is_one(path):
                raise RunError(f"another process wrote a run to {path} at this moment; choose another --out")
            run.checksums = run.checksums_now()
            yield cls(path, run)

    @contextmanager
    def locked_again(self) -> Iterator[RunFolder]:
        """What the folder holds once nobody else works on it, which may be more than when it was read."""
        with locked(self.path):
            yield RunFolder.read(self.path)

    @staticmethod
    def is_one(path: Path) -> bool:
        return (path / RUN).exists()

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoint"

    @property
    def history(self) -> Path:
        return self.path / "history.jsonl"

    @property
    def refit_history(self) -> Path:
        return self.path / "history_refit.jsonl"

    @cached_property
    def spec(self) -> ExperimentSpec:
        try:
            return ExperimentSpec.from_json(self.run.spec)
        except (KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"the specification in {self.path / RUN} is incomplete ({error}); restore the file, or start a new run"
            ) from error

    def load_data(self, if_changed: str) -> Loaded:
        """The very data of the run, checked by fingerprint; `if_changed` says what to do about other data."""
        data = load_data(self.spec, self.run.data_path)
        if data.split.fingerprint != self.run.dataset["split_fingerprint"]:
            raise RunError(f"the data of {self.path} changed since {if_changed}")
        return data

    def titles(self) -> dict[Any, str]:
        """Titles of items by item id, as far as the dataset or an item table beside its parts has any."""
        table = self.item_table()
        if table is None or not {"item_id", "title"} <= set(table.column_names):
            return {}
        return dict(zip(table["item_id"].to_pylist(), table["title"].to_pylist(), strict=True))

    def item_table(self) -> pa.Table | None:
        """What the dataset says about its items, by item_id. A courtesy, so no reason to fail."""
        try:
            if self.run.data_path is None:
                return item_titles(self.run.dataset["name"])
            return pq.read_table(Path(self.run.data_path) / ITEM_TABLE)
        except (CagedError, KeyError, pa.ArrowInvalid, OSError):
            return None

    # ---------------------------------------------------------------- writing

    def store(self) -> None:
        """Write `run.json` and the file below --record."""
        # The result first: killed in between, the run is not finished yet and a resume writes both again.
        if self.run.record:
            write_result(Path(self.run.record), self.run.to_json(), self.metrics, self._details(Path(self.run.record)))
        write_json(self.path / RUN, self.run.to_json())

    def _details(self, record: Path) -> dict[str, Any]:
        """What a record of a finished run holds beyond its metrics; the values per user go into a file beside it."""
        if self.run.status != "finished" or self.metrics is None:
            return {}
        densities, evaluated = self.path / WEIGHTS / DENSITIES, self.run.spec["config"]["eval"]
        make_parent(record)
        return {
            "history": learning_curve(self.history, f"recall@{evaluated['k'][0]}"),
            **({"densities": read_json(densities)} if densities.exists() else {}),
            "per_user": write_recorded_users(record, self.path / PER_USER, evaluated["k"][0]),
        }

    @contextmanager
    def kept_true(self) -> Iterator[None]:
        """`run.json` says how the work inside goes, from before it begins until after it ended."""
        self.store()
        try:
            with self.run.status_kept():
                yield
        finally:
            self.store()

    def write_evaluation(self, tables: Mapping[str, Iterable[pa.Table]], metrics: dict[str, Any]) -> None:
        """The tables by file name, each in parts and with its protocol, and `metrics.json`."""
        self.metrics = metrics
        said = {"protocol": self.spec.protocol}
        for name, parts in tables.items():
            told = (part.replace_schema_metadata({**(part.schema.metadata or {}), **said}) for part in parts)
            with replacing(self.path / name) as temporary, temporary.open("wb") as handle:
                write_user_table(told, handle)
        write_sealed_json(self.path / METRICS, metrics)

    def remove_leftovers(self) -> None:
        """What a killed process left behind."""
        for place in (self.path, self.checkpoints):
            remove_leftovers(place)
