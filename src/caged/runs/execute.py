"""One experiment, from a specification to a run folder; resumable at any moment.

run.json               specification, versions, hardware, fingerprints, timings, status
history.jsonl          a line per epoch
metrics.json           protocol and metrics of the test part
per_user.parquet       the same per user
sums.parquet           what each user adds to the pooled metrics
recommendations.parquet  user_id, item_id, score, rank
checkpoint/            see `training.checkpoint` and `experiments.artefact`
weights/               only where asked for, see `experiments.saved_weights`
init.safetensors       only with --init, see `experiments.initial`
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from caged.data import Interactions, Split
from caged.errors import CagedError, RunError, memory_error
from caged.evaluation.evaluate import Evaluation, evaluate, make_validator
from caged.evaluation.tables import per_user_table, recommendations_table, sums_table
from caged.files import (
    make_output_folder,
    read_json,
    remove_leftovers,
    replacing,
    write_json,
)
from caged.graph import BipartiteGraph, check_engine
from caged.models import Method, State, entry
from caged.runs import results as records
from caged.runs.artefact import save_model, save_training_data
from caged.runs.environment import hardware, resolve_device, set_threads, versions
from caged.runs.history import History
from caged.runs.initial import give_initial, load_initial
from caged.runs.loading import Loaded, load_data
from caged.runs.protocols import masked_when_testing, protocol_named, selection_parts
from caged.runs.saved_weights import FOLDER as WEIGHTS
from caged.runs.saved_weights import WeightsWatch, check_learns_weights
from caged.runs.spec import ExperimentSpec, deviations
from caged.seeding import Generators
from caged.training import Interrupted, Loop, Observer, Progress, load_checkpoint

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
    data: Loaded
    evaluation: Evaluation
    further: dict[str, Evaluation] = field(default_factory=dict)  # on the further tests of the dataset

    @property
    def metrics(self) -> dict[str, float]:
        return self.evaluation.report.metrics

    @property
    def extra_tests(self) -> dict[str, dict[str, float]]:
        return {name: other.report.metrics for name, other in self.further.items()}


def start(
    spec: ExperimentSpec,
    folder: Path,
    *,
    command: str = "",
    recording: Recording | None = None,
    save_weights: bool = False,
    init: Path | None = None,
    observers: tuple[Observer, ...] = (),
    stop_requested: Callable[[], bool] = lambda: False,
) -> RunResult:
    """Train and evaluate `spec` into the new folder `folder`. Bad input is found before anything is written.

    `init` is the folder of a run whose tables take the place of the method's first stage.
    """
    if save_weights:
        check_learns_weights(spec.method)
    set_threads(spec.threads)
    device = resolve_device(spec.device)
    check_engine(spec.train.engine, device)
    data = load_data(spec)
    initial = load_initial(init, read_run(init), read_spec(init), spec, data) if init is not None else None
    run: dict[str, Any] = {
        "format": FORMAT,
        "status": "running",
        "command": command,
        "spec": spec.to_json(),
        "dataset": data.described,
        "versions": versions(),
        "hardware": hardware(device),
        "threads": torch.get_num_threads(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "resumed": 0,
        "seconds": {},
        # A resumed run may start in another folder; a dataset that was named is found by its name again.
        "data_path": str(data.path.resolve()) if data.path == Path(spec.source) else None,
        "record": None,
        **({"save_weights": True} if save_weights else {}),
        **({"init": initial.described} if initial else {}),
    }
    record = _record_of(run, recording)
    make_output_folder(folder)
    if initial is not None:
        initial.save(folder)
    return _execute(spec, data, run, folder, device, record, observers, stop_requested)


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
    set_threads(run["threads"])  # another number of threads would add in another order
    device = resolve_device(run["hardware"]["device"])
    data = load_data(spec, run["data_path"])
    if data.split.fingerprint != run["dataset"]["split_fingerprint"]:
        raise RunError(f"the data of {folder} changed since the run started; restore it, or start a new run")
    run["resumed"] += 1
    run["status"] = "running"
    run.pop("error", None)
    record = _record_of(run, recording)
    for place in (folder, folder / "checkpoint"):
        remove_leftovers(place)
    return _execute(spec, data, run, folder, device, record, observers, stop_requested)


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


def load_data_of(folder: Path) -> tuple[ExperimentSpec, Loaded]:
    """The specification and the very data of a run, checked by fingerprint."""
    run = read_run(folder)
    spec = read_spec(folder)
    data = load_data(spec, run["data_path"])
    if data.split.fingerprint != run["dataset"]["split_fingerprint"]:
        raise RunError(f"the data of {folder} changed since the run; restore it to evaluate the run again")
    return spec, data


def warnings_of(spec: ExperimentSpec) -> list[str]:
    """What a user should know before reading the numbers."""
    protocol = protocol_named(spec.protocol)
    said = [protocol.warning] if protocol.warning else []
    changed = deviations(spec)
    if changed:
        said.append(f"protocol '{spec.protocol}' is changed by: {', '.join(changed)}")
    return said


def evaluate_part(
    method: Method[Any], parts: Split, relevant: Interactions, spec: ExperimentSpec, device: torch.device
) -> Evaluation:
    """One part, as the protocol of `spec` reports it; validation pairs are candidates only when they are evaluated."""
    return evaluate(
        method.scorer(),
        train=parts.train,
        valid=None if relevant is parts.valid else masked_when_testing(parts),
        relevant=relevant,
        ks=spec.eval.k,
        list_length=spec.eval.list_length,
        metrics=protocol_named(spec.protocol).metrics(spec.eval.k),
        device=device,
    )


def _record_of(run: dict[str, Any], recording: Recording | None) -> Path | None:
    """The file that lists this run; a resumed run keeps the one it started with, unless another is asked for."""
    if recording is not None:
        path = records.record_path(recording.root, run, recording.variant)
        records.check_place(path)
        run["record"] = str(path.resolve())
    return Path(run["record"]) if run.get("record") else None


def _execute(
    spec: ExperimentSpec,
    data: Loaded,
    run: dict[str, Any],
    folder: Path,
    device: torch.device,
    record: Path | None,
    observers: tuple[Observer, ...],
    stop_requested: Callable[[], bool],
) -> RunResult:
    status = _Status(folder, run, record)
    with status.kept():
        method = _train(spec, data.split, run, folder, device, observers, stop_requested)
        if stop_requested():  # in a closed form or in `finish`, which have no epochs; the model is saved
            raise Interrupted
        begun = time.perf_counter()
        test = data.split.test
        if test is None:
            raise RunError("this split has no test part; give one, or use a log that can be split")
        evaluation = evaluate_part(method, data.split, test, spec, device)  # the one reading of the test part
        further = {
            name: evaluate_part(method, data.split, relevant, spec, device)
            for name, relevant in data.extra_tests.items()
        }
        run["seconds"]["evaluate"] = time.perf_counter() - begun
        if stop_requested():
            raise Interrupted
        result = RunResult(run, data, evaluation, further)
        status.metrics = _metrics_of(spec, result)
        _write_results(folder, spec, data.split, evaluation, status.metrics)
        run["status"] = "finished"
    return result


def _metrics_of(spec: ExperimentSpec, result: RunResult) -> dict[str, Any]:
    """The content of `metrics.json`; further tests of a dataset stand beside the test part."""
    report = result.evaluation.report
    return {
        "protocol": spec.protocol,
        "metrics": report.metrics,
        "users": report.users_per_metric,
        "counts": report.counts,
        **({"extra_tests": result.extra_tests} if result.further else {}),
    }


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
            told = memory_error(error)
            run["status"], run["error"] = "failed", str(told) if told else f"{type(error).__name__}: {error}"
            if told:
                raise told from error
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
    if "init" in run:
        give_initial(method, folder)
    graph = BipartiteGraph.from_interactions(chosen.train, device, spec.train.engine)
    generators = Generators(spec.seed, device)
    checkpoints = folder / "checkpoint"
    stored = load_checkpoint(checkpoints)
    if stored is not None and stored.meta["finished"]:  # killed between training and evaluation
        method.prepare(graph, generators)
        method.load_serving_state(State(stored.tensors, stored.meta["scalars"]))
        run["training"] = _training_summary(spec, stored.meta["progress"], method)
        return method
    save_training_data(checkpoints, parts.train, parts.valid)
    history = History(folder / "history.jsonl", stored.meta["progress"]["epochs_in_total"] if stored else 0)
    validate = None
    if chosen.valid is not None:
        metrics = (spec.eval.monitor, f"ndcg@{spec.eval.k[0]}")
        validate = make_validator(chosen.train, chosen.valid, device=device, k=spec.eval.k[0], metrics=metrics)
    watch = WeightsWatch(folder / WEIGHTS, method) if run.get("save_weights") else None
    if watch is not None:
        watch.begin(graph)
        observers = (watch, *observers)
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
    if watch is not None:
        watch.end()
    summary = {
        "epochs": progress.epochs_in_total,
        "best_epoch": progress.stopping.best_epoch,
        "best": progress.stopping.best,
        **_last_stage(method, progress),
    }
    save_model(checkpoints, known.name, method, summary)
    run["training"] = _training_summary(spec, summary, method)
    run["seconds"]["train"] = run["seconds"].get("train", 0.0) + time.perf_counter() - begun
    return method


def _training_summary(spec: ExperimentSpec, progress: dict[str, Any], method: Method[Any]) -> dict[str, Any]:
    """What a record says about training; `state` is what the method found beside its tensors, such as MACR's c."""
    found = method.serving_state().scalars
    return {
        "epochs": progress["epochs"],
        "best_epoch": progress["best_epoch"],
        "best_validation": progress["best"],
        "monitor": spec.eval.monitor,
        **{key: progress[key] for key in ("stage", "stage_epochs") if key in progress},
        **({"state": dict(found)} if found else {}),
    }


def _last_stage(method: Method[Any], progress: Progress) -> dict[str, Any]:
    """Where there are several stages, `best_epoch` is of the last, while `epochs` are of all."""
    stages = method.stages()
    return {"stage": stages[-1].name, "stage_epochs": progress.epoch} if len(stages) > 1 else {}


def _write_results(
    folder: Path, spec: ExperimentSpec, parts: Split, evaluation: Evaluation, metrics: dict[str, Any]
) -> None:
    user_ids, item_ids = parts.train.user_ids, parts.train.item_ids
    tables = {
        "recommendations.parquet": recommendations_table(evaluation.lists, user_ids, item_ids),
        "per_user.parquet": per_user_table(evaluation.report, user_ids),
        "sums.parquet": sums_table(evaluation.report, user_ids),
    }
    for name, table in tables.items():
        metadata = {**(table.schema.metadata or {}), "protocol": spec.protocol}
        _write_parquet(folder / name, table.replace_schema_metadata(metadata))
    write_json(folder / "metrics.json", metrics)


def _write_parquet(path: Path, table: pa.Table) -> None:
    with replacing(path) as temporary, temporary.open("wb") as handle:
        pq.write_table(table, handle, compression="zstd")
