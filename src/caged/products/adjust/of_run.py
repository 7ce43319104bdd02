"""A finished run, adjusted: a new run folder that recommends, is evaluated, compared and audited like any other."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from caged.errors import ConfigError, RunError
from caged.evaluation.adjust.choice import Form
from caged.evaluation.adjust.of_scores import norms_are_equal
from caged.files import new_folder, write_text
from caged.page.html import templates_are_there
from caged.products.adjust.judge import Outcome, Ranking, judged, judges_of
from caged.products.adjust.ranking import ranking_of
from caged.products.audit import REPORT, audit_html, audit_run
from caged.runs.artefact import Artefact, load_artefact, save_model, save_training_data
from caged.runs.environment import peak_memory
from caged.runs.execute import holds_back_validation, tested, write_tested
from caged.runs.folder import RunFolder, now
from caged.runs.loading import Loaded
from caged.runs.results import ResultPlace
from caged.runs.versions import versions


@dataclass(frozen=True, eq=False)
class RunToAdjust:
    """A finished run with the data that it was trained on."""

    folder: RunFolder
    data: Loaded
    fitted: Artefact

    @classmethod
    def read(cls, path: Path, device: torch.device) -> RunToAdjust:
        folder = RunFolder.read(path)
        if folder.run.adjustment is not None:
            raise RunError(
                f"{path} is already adjusted ({folder.run.adjustment['form']}, strength "
                f"{folder.run.adjustment['strength']:g}); adjust the run it was made from"
            )
        data = folder.load_data("the run; restore it to adjust the run")
        return cls(folder, data, load_artefact(path, device))

    def record_in(self, place: ResultPlace) -> Path:
        """Where the record of the adjusted run goes; refused where it cannot."""
        return place.checked_path(self.folder.run.dataset["name"], self.folder.run.spec)

    @property
    def norm_does_nothing(self) -> bool:
        vectors = self.fitted.method.scorer().vectors
        return vectors is not None and norms_are_equal(vectors.items)


def adjust_run(
    given: RunToAdjust,
    form: Form,
    *,
    k: int,
    strength: float | None = None,
    keep: float = 0.99,
    with_curve: bool = False,
) -> Outcome:
    """Choose the strength on the validation part of the run, and measure it there and on its test part."""
    fitted, parts = given.fitted, given.data.split
    rank = _ranking(fitted)
    judges = judges_of(parts.train, parts.valid, parts.test, rank, form, k)
    if not holds_back_validation(given.folder.spec):  # it was trained on the validation part, which so says nothing
        judges.pop("valid", None)
    if strength is None and "valid" not in judges:
        raise ConfigError(
            f"this run of {fitted.name} has no validation part to choose the strength on (protocol "
            f"'{given.folder.spec.protocol}', train.validation='{given.folder.spec.train.validation}'); say how strong "
            f"the adjustment shall be: --strength 0.2"
        )
    return judged(judges, form, k, strength=strength, keep=keep, with_curve=with_curve)


def adjust_model(
    fitted: Artefact,
    form: Form,
    *,
    k: int,
    strength: float | None = None,
    keep: float = 0.99,
    with_curve: bool = False,
) -> Outcome:
    """Measure a strength, or choose it, on the validation part that a saved model was kept with."""
    if fitted.valid is None:
        raise ConfigError(f"this {fitted.name} model was saved without a validation part; fit it with valid=...")
    judges = judges_of(fitted.train, fitted.valid, None, _ranking(fitted), form, k)
    return judged(judges, form, k, strength=strength, keep=keep, with_curve=with_curve)


def _ranking(fitted: Artefact) -> Ranking:
    """By the scores as trained."""
    return ranking_of(fitted.method.scorer(), fitted.train, fitted.device)


def write_adjusted_run(
    given: RunToAdjust, outcome: Outcome, out: Path, *, command: str, result_place: ResultPlace | None = None
) -> None:
    """All files or no folder; and the record, where one is wanted."""
    begun = time.perf_counter()
    source, fitted = given.folder, replace(given.fitted, adjustment=outcome.adjustment)
    stated = {**outcome.to_json(), "run": str(source.path.resolve())}
    stated.pop("curve", None)
    run = replace(
        source.run,
        command=command,
        adjustment=stated,
        versions=versions(),
        started=now(),
        resumed=0,
        seconds={},
        record=None if result_place is None else str(given.record_in(result_place).resolve()),
        init=None,
        save_weights=False,
        memory=None,
    )
    run.checksums = run.checksums_now()
    with new_folder(out) as temporary:
        folder = RunFolder(temporary, run)
        training_data = save_training_data(folder.checkpoints, fitted.train, fitted.valid)
        save_model(
            folder.checkpoints,
            fitted.name,
            fitted.method,
            {},
            training_data=training_data,
            adjustment=outcome.adjustment,
        )
        if source.history.exists():
            shutil.copy(source.history, folder.history)
        result = tested(folder, given.data, fitted.scorer(), fitted.device)
        write_tested(result)
        if templates_are_there():
            audited = audit_run(folder, given.data, result.evaluation, further=result.further, command=command)
            write_text(temporary / REPORT, audit_html(audited))
        run.seconds["total"] = time.perf_counter() - begun
        run.memory = peak_memory(fitted.device)
        run.ended = now()
        folder.store()
