"""One experiment, from a specification to a run folder; resumable at any moment.

run.json               specification, versions, hardware, fingerprints, timings, status
history.jsonl          a line per epoch
metrics.json           protocol and metrics of the test part
per_user.parquet       the same per user
recommendations.parquet  user_id, item_id, score, rank
checkpoint/            see `training.checkpoint` and `experiments.artefact`
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from caged.data import Source, Split, load, validate_log
from caged.data.filters import k_core
from caged.errors import CagedError, DataError, RunError
from caged.evaluation.evaluate import Evaluation, evaluate, make_validator
from caged.evaluation.tables import per_user_table, recommendations_table
from caged.evaluation.topk import check_k
from caged.experiments import records
from caged.experiments.artefact import save_model, save_training_data
from caged.experiments.environment import hardware, resolve_device, set_threads, versions
from caged.experiments.protocols import (
    Protocol,
    masked_when_testing,
    protocol_named,
    selection_parts,
    split_source,
)
from caged.experiments.spec import EvalConfig, ExperimentSpec, deviations
from caged.files import (
    json_ready,
    make_output_folder,
    read_json,
    remove_leftovers,
    replacing,
    write_json,
    write_text,
)
from caged.graph import BipartiteGraph
from caged.models import Method, State, entry
from caged.seeding import Generators
from caged.training import Interrupted, Loop, Observer, load_checkpoint

FORMAT = 1  # of run.json
NEEDED = ("status", "spec", "dataset", "hardware", "threads", "resumed", "seconds", "data_path")  # of run.json


@dataclass(frozen=True)
class Recording:
    """Where the record of a run goes, and under which name."""

    root: Path
    variant: str | None = None


@dataclass(frozen=True, eq=False)
class RunResult:
    run: dict[str, Any]
    metrics: dict[str, float]
    evaluation: Evaluation


class History:
    """`history.jsonl`: appended per epoch, cut back to the checkpoint on resume."""

    def __init__(self, path: Path, keep: int) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        write_text(path, "".join(lines[:keep]))

    def epoch(self, record: dict[str, Any]) -> None:
        complete = self.path.stat().st_size
        try:
            with self.path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(json_ready(record), allow_nan=False) + "\n")
        except OSError as error:
            with suppress(OSError):
                os.truncate(self.path, complete)  # no half of a line stays
            raise RunError(f"could not write {self.path}: {error.strerror}; free space, then resume the run") from error


def start(
    spec: ExperimentSpec,
    folder: Path,
    *,
    command: str = "",
    recording: Recording | None = None,
    observers: tuple[Observer, ...] = (),
    stop_requested: Callable[[], bool] = lambda: False,
) -> RunResult:
    """Train and evaluate `spec` into the new folder `folder`. Bad input is found before anything is written."""
    set_threads(spec.threads)
    device = resolve_device(spec.device)
    parts, dataset, path = _load_split(spec)
    run: dict[str, Any] = {
        "format": FORMAT,
        "status": "running",
        "command": command,
        "spec": spec.to_json(),
        "dataset": dataset,
        "versions": versions(),
        "hardware": hardware(device),
        "threads": torch.get_num_threads(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "resumed": 0,
        "seconds": {},
        # A resumed run may start in another folder; a dataset that was named is found by its name again.
        "data_path": str(path.resolve()) if path == Path(spec.source) else None,
        "record": None,
    }
    record = _record_of(run, recording)
    make_output_folder(folder)
    return _execute(spec, parts, run, folder, device, record, observers, stop_requested)


def resume(
    folder: Path,
    *,
    recording: Recording | None = None,
    observers: tuple[Observer, ...] = (),
    stop_requested: Callable[[], bool] = lambda: False,
) -> RunResult:
    """Go on with an interrupted or killed run, from its last checkpoint; its record is kept up to date."""
    run = read_run(folder)
    if run["status"] == "finished":
        raise RunError(f"the run in {folder} is finished already; start a new one with another --out")
    spec = read_spec(folder)
    torch.set_num_threads(run["threads"])  # another number of threads would add in another order
    device = resolve_device(run["hardware"]["device"])
    parts, dataset, _ = _load_split(spec, run["data_path"])
    if dataset["split_fingerprint"] != run["dataset"]["split_fingerprint"]:
        raise RunError(f"the data of {folder} changed since the run started; restore it, or start a new run")
    run["resumed"] += 1
    run["status"] = "running"
    run.pop("error", None)
    record = _record_of(run, recording)
    for place in (folder, folder / "checkpoint"):
        remove_leftovers(place)
    return _execute(spec, parts, run, folder, device, record, observers, stop_requested)


def read_run(folder: Path) -> dict[str, Any]:
    if not (folder / "run.json").exists():
        raise RunError(f"{folder} is not a run folder (it has no run.json); give a folder that caged train wrote")
    run = read_json(folder / "run.json")
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise RunError(f"{folder / 'run.json'} has another format than {FORMAT}; use the version that wrote it")
    missing = [key for key in NEEDED if key not in run]
    if missing:
        raise RunError(f"{folder / 'run.json'} lacks '{missing[0]}'; restore the file, or start a new run")
    return run


def read_spec(folder: Path) -> ExperimentSpec:
    """The specification of the run in `folder`."""
    try:
        return ExperimentSpec.from_json(read_run(folder)["spec"])
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(
            f"the specification in {folder / 'run.json'} is incomplete ({error}); restore the file, or start a new run"
        ) from error


def load_split_of(folder: Path) -> tuple[ExperimentSpec, Split]:
    """The specification and the very split of a run, checked by fingerprint."""
    run = read_run(folder)
    spec = read_spec(folder)
    parts, dataset, _ = _load_split(spec, run["data_path"])
    if dataset["split_fingerprint"] != run["dataset"]["split_fingerprint"]:
        raise RunError(f"the data of {folder} changed since the run; restore it to evaluate the run again")
    return spec, parts


def warnings_of(spec: ExperimentSpec) -> list[str]:
    """What a user should know before reading the numbers."""
    protocol = protocol_named(spec.protocol)
    said = [protocol.warning] if protocol.warning else []
    changed = deviations(spec)
    if changed:
        said.append(f"protocol '{spec.protocol}' is changed by: {', '.join(changed)}")
    return said


def evaluate_test(
    method: Method[Any], parts: Split, protocol: Protocol, config: EvalConfig, device: torch.device
) -> Evaluation:
    """The one reading of the test part."""
    if parts.test is None:
        raise RunError("this split has no test part; give one, or use a log that can be split")
    return evaluate(
        method.scorer(),
        train=parts.train,
        valid=masked_when_testing(parts),
        relevant=parts.test,
        ks=config.k,
        list_length=config.list_length,
        metrics=protocol.metrics(config.k),
        device=device,
    )


def _record_of(run: dict[str, Any], recording: Recording | None) -> Path | None:
    """The file that lists this run; a resumed run keeps the one it started with, unless another is asked for."""
    if recording is not None:
        path = records.record_path(recording.root, run, recording.variant)
        records.check_place(path)
        run["record"] = str(path.resolve())
    return Path(run["record"]) if run.get("record") else None


def _load_split(spec: ExperimentSpec, path: str | None = None) -> tuple[Split, dict[str, Any], Path]:
    """The split that the specification asks for, what `run.json` says about it, and where the data lies."""
    protocol = protocol_named(spec.protocol)
    source = load(
        path or spec.source,
        columns=spec.data.columns(),
        min_rating=spec.data.min_rating,
        catalogue=protocol.catalogue,
    )
    if spec.data.k_core is not None:
        source = _core_of(source, spec.data.k_core)
    parts = split_source(source, protocol, spec.data.split_seed, kind=spec.data.split, mark=spec.data.validate_on)
    for k in spec.eval.k:
        check_k(k, parts.train.item_count)
    given = [source.log] if source.log is not None else list((source.parts or {}).values())
    described = {
        "name": source.name,
        "users": parts.train.user_count,
        "items": parts.train.item_count,
        "merged_duplicates": sum(part.merged for part in given),
        "split": {"kind": parts.kind, "parameters": dict(parts.parameters), "notes": dict(parts.notes)},
        "interactions": {name: len(part) for name, part in parts.parts.items()},
        "fingerprints": {name: part.fingerprint for name, part in parts.parts.items()},
        "split_fingerprint": parts.fingerprint,
    }
    return parts, described, source.path


def _core_of(source: Source, k: int) -> Source:
    if source.log is None:
        raise DataError(
            f"data.k_core is {k}, but '{source.name}' is split already and its parts stay as they are; "
            f"leave data.k_core out, or give one log"
        )
    core = k_core(source.log, k, k, where=str(source.path))
    validate_log(core, f"the {k}-core of {source.path}")
    return replace(source, log=core)


def _execute(
    spec: ExperimentSpec,
    parts: Split,
    run: dict[str, Any],
    folder: Path,
    device: torch.device,
    record: Path | None,
    observers: tuple[Observer, ...],
    stop_requested: Callable[[], bool],
) -> RunResult:
    status = _Status(folder, run, record)
    with status.kept():
        method = _train(spec, parts, run, folder, device, observers, stop_requested)
        begun = time.perf_counter()
        evaluation = evaluate_test(method, parts, protocol_named(spec.protocol), spec.eval, device)
        run["seconds"]["evaluate"] = time.perf_counter() - begun
        _write_results(folder, spec, parts, evaluation)
        status.metrics = {"protocol": spec.protocol, "metrics": evaluation.report.metrics}
        run["status"] = "finished"
    return RunResult(run, evaluation.report.metrics, evaluation)


@dataclass
class _Status:
    """`run.json` and the record of a run, kept true whatever happens."""

    folder: Path
    run: dict[str, Any]
    record: Path | None
    metrics: dict[str, Any] | None = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        run = self.run
        begun = time.perf_counter()
        spent_before = run["seconds"].get("total", 0.0)
        self._store()
        try:
            yield
        except (Interrupted, KeyboardInterrupt):
            run["status"] = "interrupted"
            raise
        except CagedError as error:
            run["status"], run["error"] = "failed", str(error)
            raise
        except Exception as error:
            run["status"], run["error"] = "failed", f"{type(error).__name__}: {error}"
            raise
        finally:
            run["seconds"]["total"] = spent_before + time.perf_counter() - begun
            run["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
            self._store()

    def _store(self) -> None:
        # The record first: killed in between, the run is not finished yet and a resume writes both again.
        if self.record is not None:
            records.write_record(self.record, self.run, self.metrics)
        write_json(self.folder / "run.json", self.run)


def _train(
    spec: ExperimentSpec,
    parts: Split,
    run: dict[str, Any],
    folder: Path,
    device: torch.device,
    observers: tuple[Observer, ...],
    stop_requested: Callable[[], bool],
) -> Method[Any]:
    """The trained method, its best state restored. Only train and the deciding part get this far."""
    begun = time.perf_counter()
    chosen = selection_parts(parts, protocol_named(spec.protocol))
    known = entry(spec.method)
    method = known.method(spec.config)
    graph = BipartiteGraph.from_interactions(chosen.train, device, spec.train.engine)
    generators = Generators(spec.seed, device)
    checkpoints = folder / "checkpoint"
    stored = load_checkpoint(checkpoints)
    if stored is not None and stored.meta["finished"]:  # killed between training and evaluation
        method.prepare(graph, generators)
        method.load_state(State(stored.tensors, stored.meta["scalars"]))
        run["training"] = _training_summary(spec, stored.meta["progress"])
        return method
    save_training_data(checkpoints, parts.train, parts.valid)
    history = History(folder / "history.jsonl", stored.meta["progress"]["epochs_in_total"] if stored else 0)
    validate = None
    if chosen.valid is not None:
        metrics = (spec.eval.monitor, f"ndcg@{spec.eval.k[0]}")
        validate = make_validator(chosen.train, chosen.valid, device=device, k=spec.eval.k[0], metrics=metrics)
    loop = Loop(
        method,
        graph,
        spec.train,
        generators,
        validate,
        monitor=spec.eval.monitor,
        folder=checkpoints,
        observers=(history, *observers),
        stop_requested=stop_requested,
    )
    progress = loop.run()
    summary = {
        "epochs": progress.epochs_in_total,
        "best_epoch": progress.stopping.best_epoch,
        "best": progress.stopping.best,
    }
    save_model(checkpoints, known.name, method, summary)
    run["training"] = _training_summary(spec, summary)
    run["seconds"]["train"] = run["seconds"].get("train", 0.0) + time.perf_counter() - begun
    return method


def _training_summary(spec: ExperimentSpec, progress: dict[str, Any]) -> dict[str, Any]:
    return {
        "epochs": progress["epochs"],
        "best_epoch": progress["best_epoch"],
        "best_validation": progress["best"],
        "monitor": spec.eval.monitor,
    }


def _write_results(folder: Path, spec: ExperimentSpec, parts: Split, evaluation: Evaluation) -> None:
    report = evaluation.report
    user_ids, item_ids = parts.train.user_ids, parts.train.item_ids
    tables = {
        "recommendations.parquet": recommendations_table(evaluation.lists, user_ids, item_ids),
        "per_user.parquet": per_user_table(report, user_ids),
    }
    for name, table in tables.items():
        _write_parquet(folder / name, table.replace_schema_metadata({"protocol": spec.protocol}))
    write_json(
        folder / "metrics.json",
        {
            "protocol": spec.protocol,
            "metrics": report.metrics,
            "users": report.users_per_metric,
            "counts": report.counts,
        },
    )


def _write_parquet(path: Path, table: pa.Table) -> None:
    with replacing(path) as temporary, temporary.open("wb") as handle:
        pq.write_table(table, handle, compression="zstd")
