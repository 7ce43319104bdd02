"""`caged train`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from caged.cli.metrics_table import print_metrics, print_shown
from caged.cli.output import INTERRUPTED, AsJson, Ids, Verbose, command_line, print_json, print_sentences, say
from caged.cli.progress import StopOnCtrlC, progress_line
from caged.cli.resuming import check_only_resume
from caged.columns import Columns
from caged.errors import CagedError, ConfigError, RankLostError
from caged.files import read_sealed_json, write_text
from caged.page.html import templates_are_there
from caged.products.audit import AuditResult, audit_html, audit_run, run_sections, verdict_sentences
from caged.progress import EpochProgress
from caged.runs.execute import AlreadyFinished, RunResult, resume, start, warnings_of
from caged.runs.folder import METRICS, RunFolder
from caged.runs.follow import follow, follow_resumed
from caged.runs.ranks import LOST, Place, begin_rank, check_devices, columns_of, launch, resume_command
from caged.runs.results import ResultPlace
from caged.runs.spec import ExperimentSpec, resolve
from caged.signals import ENDED_BY
from caged.training import Interrupted

REPORT = "report.html"
# What may be said together with --resume: how to report, not what to run.
WITH_RESUME = ("resume_", "devices", "record", "variant", "no_report", "as_json", "verbose")


def train(
    ctx: typer.Context,
    data: Annotated[
        str | None,
        typer.Option(help="Dataset name, log file (.csv, .tsv, .parquet, .txt), or folder with train and test files."),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method to train; see caged methods.")] = None,
    preset: Annotated[
        list[str] | None, typer.Option(help="Preset name or TOML file; repeatable, the last one wins.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="One value, e.g. method.layers=2 or train.epochs=50; repeatable."),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="honest (choose the epoch on validation) or paper (as the papers' tables did).")
    ] = "honest",
    seed: Annotated[int, typer.Option(help="Training seed (the split has its own, data.split_seed).")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    devices: Annotated[
        int,
        typer.Option(help="Processes that train together, each a share of the embedding columns: one per GPU or so."),
    ] = 1,
    threads: Annotated[int | None, typer.Option(help="CPU threads [default: all cores].")] = None,
    out: Annotated[Path | None, typer.Option(help="New folder for the run [default: runs/DATA-METHOD-SEED].")] = None,
    resume_: Annotated[
        Path | None,
        typer.Option("--resume", help="Continue the run in this folder (no other training options allowed)."),
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option(help="Finished lightgcn run on the same split, to replace the first stage of galore."),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Also save the result as a small JSON file under this folder.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Name for this variant of the method in --record.")] = None,
    user_column: Annotated[str | None, typer.Option(help="Name of the user column [default: user_id].")] = None,
    item_column: Annotated[str | None, typer.Option(help="Name of the item column [default: item_id].")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Name of the rating column [default: rating].")] = None,
    timestamp_column: Annotated[str | None, typer.Option(help="Name of the time column [default: timestamp].")] = None,
    ids: Ids = "auto",
    min_rating: Annotated[float | None, typer.Option(help="Keep only interactions with at least this rating.")] = None,
    k_core: Annotated[
        int | None,
        typer.Option(help="Keep only users and items with at least this many interactions, once all others are gone."),
    ] = None,
    catalogue: Annotated[
        str,
        typer.Option(help="all (users and items of every part) or train (leave out those that occur only in test)."),
    ] = "all",
    validate_on: Annotated[
        str | None,
        typer.Option(help="Choose the epoch only on held-out interactions where COLUMN=VALUE, e.g. source=explore."),
    ] = None,
    no_validation: Annotated[
        bool,
        typer.Option(
            "--no-validation",
            help="Train on the validation part too, for exactly --set train.epochs=N. Closed forms always do.",
        ),
    ] = False,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit",
            help="After validation has decided, train again on train + validation with the same decisions.",
        ),
    ] = False,
    save_weights: Annotated[
        bool,
        typer.Option(
            "--save-weights", help="Save edge weights from before, during and after training, for caged plot iip."
        ),
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help=f"Do not write the page ({REPORT}).")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Train a method on a log and evaluate it.

    Splits each user's log 7:1:2, chooses the epoch on the validation part and reads the test part once, at the end.
    After Ctrl-C or a crash, --resume continues the run.

    Examples:

      caged train --data log.csv --method lightgcn --out runs/first

      caged train --data ml-1m-caged --method lightgcn --preset movie --set train.epochs=50

      caged train --data log.csv --method galore --init runs/first --out runs/galore

      caged train --data log.csv --method lightgcn --refit --out runs/final

      caged train --resume runs/first
    """
    rank = Place.of(os.environ)
    if rank is not None:
        begin_rank(rank, verbose=verbose)
    place = ResultPlace(record, variant) if record else None
    if variant and not record:
        raise ConfigError("--variant works only with --record DIR; add it, or leave --variant out")
    begin: Callable[..., RunResult]
    along: Callable[[Columns], None]
    if resume_ is not None:
        check_only_resume(ctx, WITH_RESUME)
        interrupted = RunFolder.read(resume_)
        spec, folder = interrupted.spec, resume_
        begin = partial(resume, interrupted, result_place=place, no_report=no_report)
        along = partial(follow_resumed, interrupted)
    else:
        if data is None or method is None:
            raise ConfigError("give --data and --method, or --resume DIR; see caged train --help")
        columns = {"user_column": user_column, "item_column": item_column, "rating_column": rating_column}
        columns |= {"timestamp_column": timestamp_column, "ids": ids}
        spec = resolve(
            data,
            method,
            protocol=protocol,
            presets=preset or (),
            overrides=[
                *(set_ or ()),
                *(["train.validation=no"] if no_validation else ()),
                *(["train.refit=true"] if refit else ()),
            ],
            seed=seed,
            device=device,
            threads=threads,
            data={
                **columns,
                "min_rating": min_rating,
                "k_core": k_core,
                "validate_on": validate_on,
                "catalogue": catalogue,
            },
        )
        folder = out or Path("runs") / f"{_stem(data)}-{method}-{seed}"
        begin = partial(
            start,
            spec,
            folder,
            command=command_line(),
            result_place=place,
            save_weights=save_weights,
            no_report=no_report,
            init=init,
        )
        along = partial(follow, spec)
    check_devices(spec, devices, rank)
    if devices > 1 and rank is None:
        sys.exit(launch(devices, sys.argv[1:], folder))
    if rank is not None and not rank.first:
        _train_along(rank, spec, folder, along)
        return
    for warning in warnings_of(spec):
        say(f"warning: {warning}")
    try:
        result = _trained(begin, rank, spec, folder, quiet=as_json and not verbose)
    except AlreadyFinished:
        _report_finished(RunFolder.read(folder), as_json=as_json)
        return
    audited = None if result.run.no_report else _audited(result)
    page = None if audited is None else _written_page(result, audited)
    _report(result, audited, as_json=as_json)
    if not as_json:
        say(f"run folder: {result.folder.path}")
        if page is not None:
            say(f"page: {page}")


def _trained(
    begin: Callable[..., RunResult], rank: Place | None, spec: ExperimentSpec, folder: Path, *, quiet: bool
) -> RunResult:
    """The run, with its progress on stderr; Ctrl-C ends it properly, and so does the loss of another rank."""
    try:
        with (
            progress_line(quiet=quiet) as line,
            StopOnCtrlC(*ENDED_BY) as stop,
            columns_of(rank, spec, folder) as columns,
        ):
            return begin(observers=(EpochProgress(line),), stop_requested=stop, columns=columns)
    except Interrupted:
        say(f"stopped; continue with: {resume_command(folder, rank)}")
        sys.exit(INTERRUPTED)
    except RankLostError:
        if rank is not None and rank.launched:
            sys.exit(LOST)  # the launcher knows which
        raise


def _train_along(rank: Place, spec: ExperimentSpec, folder: Path, along: Callable[[Columns], None]) -> None:
    """What a rank does that is not the first."""
    try:
        with columns_of(rank, spec, folder) as columns:
            along(columns)
    except RankLostError:
        sys.exit(LOST)


def _audited(result: RunResult) -> AuditResult | None:
    """The audit of the run; the run is finished and stays so, whatever happens to its audit."""
    folder, further, command = result.folder, result.further, result.run.command
    try:
        return audit_run(folder, result.data, result.evaluation, further=further, command=command)
    except CagedError as error:
        say(f"note: no verdict and no {REPORT}: {error}")
        return None


def _written_page(result: RunResult, audited: AuditResult) -> Path | None:
    page = result.folder.path / REPORT
    if not templates_are_there():
        say(f"note: no {REPORT}, because jinja2 is not installed; pip install 'caged-rec[report]'")
        return None
    try:
        write_text(page, audit_html(audited, further=run_sections(result.folder)))
    except CagedError as error:
        say(f"note: no {REPORT}: {error}")
        return None
    return page


def _report(result: RunResult, audited: AuditResult | None, *, as_json: bool) -> None:
    spec, run, folder = result.folder.spec, result.run, result.folder.path
    merged = run.dataset["merged_duplicates"]
    if merged:
        say(f"{merged:,} duplicate rows were merged")
    if (trained_on := result.trained_on_validation) and spec.train.refit:
        say(f"refitted: trained again, now including the {trained_on:,} validation interactions")
    elif trained_on:
        say(f"nothing is chosen on validation, so its {trained_on:,} interactions are used for training too")
    elif spec.data.validate_on is not None:
        held_out = run.dataset["interactions"]["valid"]
        candidates = run.dataset["split"]["notes"]["validation_candidates"]
        say(
            f"validation: the {held_out:,} of {candidates:,} held-out interactions with {spec.data.validate_on}; "
            f"the others went back to train"
        )
    if (sample := (run.training or {}).get("validation_users")) is not None:
        say(f"validation ranked for a random sample of {sample['sampled']:,} of {sample['of']:,} users")
    for note in run.dataset["notes"]:
        say(f"note: {note}")
    if as_json:
        content = {"folder": folder, "protocol": spec.protocol, "metrics": result.metrics, "run": run.to_json()}
        content |= {"shown_floors": result.floors} if result.floors else {}
        print_json({**content, **({"extra_tests": result.extra_tests} if result.extra_tests else {})})
        return
    if audited is not None:
        print_sentences(verdict_sentences(audited)[:1])
    trained = run.training or {}
    title = f"{spec.method} on {run.dataset['name']}, protocol {spec.protocol}, seed {spec.seed}"
    title += _which_epoch(trained)
    print_metrics(result.metrics, spec.eval.k, title)
    print_shown(result.metrics, result.floors, spec.method, spec.eval.shown_half)
    for name, metrics in result.extra_tests.items():
        print_metrics(metrics, spec.eval.k, f"{title}, {name}")


def _report_finished(folder: RunFolder, *, as_json: bool) -> None:
    """Loops that resume until it works end here: that there is nothing left to do is no failure."""
    say(f"the run in {folder.path} is already finished; nothing to do")
    if as_json:
        measured = read_sealed_json(folder.path / METRICS)
        further = {"extra_tests": measured["extra_tests"]} if "extra_tests" in measured else {}
        content = {"folder": folder.path, "protocol": measured["protocol"], "metrics": measured["metrics"]}
        print_json({**content, "run": folder.run.to_json(), **further})


def _which_epoch(trained: dict[str, Any]) -> str:
    """The epoch that was chosen; of the last stage where there are several."""
    if not trained.get("epochs"):
        return ""
    if "refit" in trained:
        return f", refitted for {trained['refit']['epochs']} epochs"
    if trained["best_validation"] is None:  # nothing was chosen
        return f", all of {trained['epochs']} epochs"
    if not trained["best_epoch"]:
        return f", the start of stage {trained.get('stage', 'one')}: no epoch was better"
    stage = f" in stage {trained['stage']}" if "stage" in trained else ""
    return f", epoch {trained['best_epoch']} of {trained.get('stage_epochs', trained['epochs'])}{stage}"


def _stem(data: str) -> str:
    return Path(data).resolve().name.partition(".")[0]
