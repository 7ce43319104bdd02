"""One run, from a specification to a run folder (see `runs.folder`); resumable at any moment.

It is trained on what the protocol shows it, then tested once, then written down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from caged.columns import WHOLE, Columns
from caged.data import Interactions, Split
from caged.data.shown import ShownAtRandom
from caged.errors import RunError
from caged.evaluation.basis import Basis
from caged.evaluation.evaluate import Evaluation, evaluate
from caged.evaluation.groups import Grouping, grouping
from caged.evaluation.metrics import keys_of_shown
from caged.graph import check_engine
from caged.models import MayBeNeutral, Scorer, registered
from caged.runs.environment import (
    forget_peak,
    hardware,
    keep_freed_memory,
    peak_memory,
    resolve_device,
    set_threads,
    share_threads,
)
from caged.runs.folder import PER_USER, RECOMMENDATIONS, SUMS, Run, RunFolder
from caged.runs.initial import check_no_refit, load_initial
from caged.runs.loading import Loaded, load_data
from caged.runs.planning.fitting import refuse_what_cannot_fit
from caged.runs.protocols import protocol_named
from caged.runs.results import ResultPlace
from caged.runs.saved_weights import check_learns_weights
from caged.runs.spec import ExperimentSpec, deviations
from caged.runs.train import train
from caged.runs.validation import holds_out_validation
from caged.runs.versions import versions
from caged.training import Interrupted, Observer


@dataclass(frozen=True, eq=False)
class RunResult:
    folder: RunFolder
    data: Loaded
    evaluation: Evaluation
    further: dict[str, Evaluation] = field(default_factory=dict)  # on the further tests of the dataset

    @property
    def run(self) -> Run:
        return self.folder.run

    @property
    def trained_on_validation(self) -> int:
        """Interactions of the validation part that were trained on: nothing was chosen on them, or it was a refit."""
        valid, spec = self.data.split.valid, self.folder.spec
        return 0 if valid is None or holds_back_validation(spec) else len(valid)

    @property
    def metrics(self) -> dict[str, float]:
        return self.evaluation.report.metrics

    @property
    def floors(self) -> dict[str, dict[str, float]]:
        """What random choice and mere popularity reach where chance showed items; empty where it did not."""
        return self.evaluation.report.floors

    @property
    def extra_tests(self) -> dict[str, dict[str, float]]:
        return {name: other.report.metrics for name, other in self.further.items()}


def start(
    spec: ExperimentSpec,
    folder: Path,
    *,
    command: str = "",
    result_place: ResultPlace | None = None,
    save_weights: bool = False,
    no_report: bool = False,
    init: Path | None = None,
    observers: tuple[Observer, ...] = (),
    stop_requested: Callable[[], bool] = lambda: False,
    columns: Columns = WHOLE,
) -> RunResult:
    """Train and evaluate `spec` into the new folder `folder`. Bad input is found before anything is written.

    `init` is the folder of a run whose tables take the place of the method's first stage. This is what the first rank
    of `columns` does; the others are in `runs.follow`.
    """
    if save_weights:
        check_learns_weights(spec.method)
    if init is not None:
        check_no_refit(spec)
    set_threads(spec.threads)
    device = resolve_device(spec.device)
    check_engine(spec.train.engine, device)
    data = load_data(spec)
    spec = data.spec
    _refuse_what_cannot_fit(data, device, columns)
    initial = load_initial(RunFolder.read(init), spec, data) if init is not None else None
    run = Run(
        command=command,
        spec=spec.to_json(),
        dataset=data.facts,
        versions=versions(),
        hardware=hardware(device),
        threads=torch.get_num_threads(),
        # A resumed run may start in another folder; a dataset that was named is found by its name again.
        data_path=str(data.path.resolve()) if data.path == Path(spec.source) else None,
        save_weights=save_weights,
        no_report=no_report,
        init=initial.described if initial else None,
        ranks=columns.described(),
    )
    share_threads(columns.size)
    _place_result(run, result_place)
    with RunFolder.create(folder, run) as created:
        if initial is not None:
            initial.save(folder)
        return _execute(created, data, device, observers, stop_requested, columns)


def _refuse_what_cannot_fit(data: Loaded, device: torch.device, columns: Columns) -> None:
    test = data.split.test
    tested = 0 if test is None else int(np.count_nonzero(test.user_degrees))
    refuse_what_cannot_fit(data.spec, data.split.train, device, columns.size, tested_users=tested)


class AlreadyFinished(RunError):  # noqa: N818 - the command line takes it for a success
    """There is nothing to resume."""


def resume(
    folder: RunFolder,
    *,
    result_place: ResultPlace | None = None,
    no_report: bool = False,
    observers: tuple[Observer, ...] = (),
    stop_requested: Callable[[], bool] = lambda: False,
    columns: Columns = WHOLE,
) -> RunResult:
    """Go on with an interrupted or killed run, from its last checkpoint; its result file is kept up to date."""
    _refuse_finished(folder)  # also where nothing can be written, not even a lock
    with folder.locked_again() as current:
        _refuse_finished(current)
        current.run.no_report |= no_report
        return _resume(current, result_place, observers, stop_requested, columns)


def _refuse_finished(folder: RunFolder) -> None:
    if folder.run.status == "finished":
        raise AlreadyFinished(f"the run in {folder.path} is already finished; start a new one with another --out")


def _resume(
    folder: RunFolder,
    result_place: ResultPlace | None,
    observers: tuple[Observer, ...],
    stop_requested: Callable[[], bool],
    columns: Columns,
) -> RunResult:
    run = folder.run
    set_threads(run.threads)  # another number of threads would add in another order
    share_threads(columns.size)
    run.ranks = columns.described()
    device = resolve_device(run.hardware["device"])
    data = folder.load_data("the run started; restore it, or start a new run")
    _refuse_what_cannot_fit(data, device, columns)  # it may go on elsewhere, or with fewer devices
    run.resumed += 1
    run.status, run.error = "running", None
    _place_result(run, result_place)
    folder.remove_leftovers()
    return _execute(folder, data, device, observers, stop_requested, columns)


def _place_result(run: Run, place: ResultPlace | None) -> None:
    """A resumed run keeps the result file that it started with, unless another is asked for."""
    if place is not None:
        path = place.checked_path(run.dataset["name"], run.spec)
        run.record = str(path.resolve())


def _execute(
    folder: RunFolder,
    data: Loaded,
    device: torch.device,
    observers: tuple[Observer, ...],
    stop_requested: Callable[[], bool],
    columns: Columns,
) -> RunResult:
    keep_freed_memory(device)
    with folder.kept_true(), _memory_told(folder.run, device):
        method = train(folder, data.split, device, observers, stop_requested, columns)
        if stop_requested():  # in a closed form or in `finish`, which have no epochs; the model is saved
            raise Interrupted
        result = tested(folder, data, method.scorer(), device, method.columns)
        if stop_requested():
            raise Interrupted
        write_tested(result)
    return result


@contextmanager
def _memory_told(run: Run, device: torch.device) -> Iterator[None]:
    """Whatever ends the work inside, the run says how much memory it took."""
    forget_peak(device)
    try:
        yield
    finally:
        run.memory = peak_memory(device)


def tested(
    folder: RunFolder,
    data: Loaded,
    scorer: Scorer,
    device: torch.device,
    columns: Columns = WHOLE,  # noqa: PT028 - it is no test
) -> RunResult:
    """The one reading of the test part, and of the further tests that come with the dataset."""
    begun = time.perf_counter()
    if data.split.test is None:
        raise RunError("this split has no test part; give one, or use a log that can be split")
    evaluation = evaluate_part(scorer, data.split, data.split.test, folder.spec, device, columns=columns)
    further = {
        name: evaluate_part(scorer, data.split, relevant, folder.spec, device, columns=columns)
        for name, relevant in data.extra_tests.items()
    }
    folder.run.seconds["evaluate"] = time.perf_counter() - begun
    return RunResult(folder, data, evaluation, further)


def holds_back_validation(spec: ExperimentSpec) -> bool:
    """Whether the model has never been trained on the validation part."""
    return not spec.train.refit and holds_out_validation(registered(spec.method).method(spec.config), spec.train)


def evaluate_part(
    scorer: Scorer,
    parts: Split,
    relevant: Interactions,
    spec: ExperimentSpec,
    device: torch.device,
    chosen: Grouping | None = None,
    columns: Columns = WHOLE,
) -> Evaluation:
    """One part, as the protocol of `spec` reports it; also by the groups that somebody chose, and the test part by
    what chance showed, where that is known."""
    seen = parts.seen_before(relevant)
    shown = _shown_at_random(parts, relevant, spec)
    groups = (chosen or grouping(spec.eval.popular_share)).of(seen.train)
    keys = protocol_named(spec.protocol).metrics(spec.eval.k, spec.eval.list_length, groups.names)
    return evaluate(
        scorer,
        train=seen.train,
        valid=seen.valid,
        relevant=relevant,
        ks=spec.eval.k,
        list_length=spec.eval.list_length,
        metrics=keys if shown is None else [*keys, *keys_of_shown(spec.eval.shown_k, groups.names)],
        groups=groups,
        shown=shown,
        device=device,
        columns=columns,
    )


def _shown_at_random(parts: Split, relevant: Interactions, spec: ExperimentSpec) -> ShownAtRandom | None:
    if parts.test_negative is None or relevant is not parts.test:
        return None
    return ShownAtRandom.of(relevant, parts.test_negative, spec.eval.shown_half)


def write_tested(result: RunResult) -> None:
    """What the test part said; further tests of a dataset stand beside it."""
    evaluation = result.evaluation
    report = evaluation.report
    tables = {
        RECOMMENDATIONS: evaluation.recommendation_blocks(),
        PER_USER: [evaluation.per_user],
        SUMS: [evaluation.sums],
    }
    metrics = {
        "protocol": result.folder.spec.protocol,
        **({"refit": True} if result.folder.spec.train.refit else {}),
        "metrics": report.metrics,
        "users": report.users_per_metric,
        "counts": report.counts,
        "basis": Basis.of(evaluation.reference, report.counts).to_json(),
        **({"shown_floors": report.floors} if report.floors else {}),
        **({"extra_tests": result.extra_tests} if result.further else {}),
    }
    result.folder.write_evaluation(tables, metrics)


def warnings_of(spec: ExperimentSpec) -> list[str]:
    """What a user should know before reading the numbers."""
    protocol = protocol_named(spec.protocol)
    said = [protocol.warning] if protocol.warning else []
    changed = deviations(spec)
    if changed:
        said.append(f"protocol '{spec.protocol}' is changed by: {', '.join(changed)}")
    neutral = spec.config.neutral() if isinstance(spec.config, MayBeNeutral) else None
    return [*said, neutral] if neutral else said
