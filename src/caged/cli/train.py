"""`caged train`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from caged.cli.metrics_table import print_metrics, print_shown
from caged.cli.output import INTERRUPTED, AsJson, Ids, Verbose, command_line, print_json, print_sentences, say
from caged.cli.progress import StopOnCtrlC, progress_line
from caged.errors import CagedError, ConfigError
from caged.files import read_sealed_json, write_text
from caged.page.html import templates_are_there
from caged.products.audit import AuditResult, audit_html, audit_run, run_sections, verdict_sentences
from caged.progress import EpochProgress
from caged.runs.execute import AlreadyFinished, RunResult, resume, start, warnings_of
from caged.runs.folder import METRICS, RunFolder
from caged.runs.results import ResultPlace
from caged.runs.spec import resolve
from caged.training import Interrupted

REPORT = "report.html"
# What may be said together with --resume: how to report, not what to run.
WITH_RESUME = ("resume_", "record", "variant", "no_report", "as_json", "verbose")


def train(
    ctx: typer.Context,
    data: Annotated[
        str | None,
        typer.Option(help="Dataset name, log file (.csv, .tsv, .parquet, .txt), or folder with train and test files."),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method to train; see caged methods.")] = None,
    preset: Annotated[
        list[str] | None, typer.Option(help="Named values or a TOML file; repeatable, later wins.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="One value, e.g. method.layers=2 or train.epochs=50; repeatable."),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="honest (select on validation) or paper (as printed tables).")
    ] = "honest",
    seed: Annotated[int, typer.Option(help="Seed of training; the split has its own: data.split_seed.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="CPU threads; all cores if left out.")] = None,
    out: Annotated[Path | None, typer.Option(help="New folder of the run [default: runs/DATA-METHOD-SEED].")] = None,
    resume_: Annotated[
        Path | None, typer.Option("--resume", help="Go on with the run in this folder; takes no other options.")
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option(help="Finished lightgcn run on the same split that stands for the first stage (galore)."),
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Also keep the result as a small JSON below this folder.")] = None,
    variant: Annotated[str | None, typer.Option(help="Name of a variant of the method, for --record.")] = None,
    user_column: Annotated[str | None, typer.Option(help="Name of the user column [default: user_id].")] = None,
    item_column: Annotated[str | None, typer.Option(help="Name of the item column [default: item_id].")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Name of the rating column [default: rating].")] = None,
    timestamp_column: Annotated[str | None, typer.Option(help="Name of the time column [default: timestamp].")] = None,
    ids: Ids = "auto",
    min_rating: Annotated[float | None, typer.Option(help="Keep interactions rated at least this.")] = None,
    k_core: Annotated[
        int | None, typer.Option(help="Keep users and items with at least this many interactions among themselves.")
    ] = None,
    catalogue: Annotated[
        str,
        typer.Option(
            help="all (users and items of every part) or train (without those that only the test part names)."
        ),
    ] = "all",
    validate_on: Annotated[
        str | None,
        typer.Option(help="Choose the epoch only on held-out interactions with COLUMN=VALUE, e.g. source=explore."),
    ] = None,
    no_validation: Annotated[
        bool,
        typer.Option(
            "--no-validation",
            help="Train on the validation part too, for exactly --set train.epochs=N. Closed forms do so anyway.",
        ),
    ] = False,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit",
            help="Once validation has decided, train again on train and validation, with its decisions repeated.",
        ),
    ] = False,
    save_weights: Annotated[
        bool, typer.Option("--save-weights", help="Keep edge weights before, during and after, for caged plot iip.")
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help=f"Leave the page ({REPORT}) out.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Train a method on a log and evaluate it.

    The log is split 7:1:2 per user, the epoch is chosen on the validation part, the test part is read once at the end.
    Ctrl-C leaves a run that --resume continues, and so does a crash.

    Examples:

      caged train --data log.csv --method lightgcn --out runs/first

      caged train --data ml-1m-caged --method lightgcn --preset movie --set train.epochs=50

      caged train --data log.csv --method galore --init runs/first --out runs/galore

      caged train --data log.csv --method lightgcn --refit --out runs/final

      caged train --resume runs/first
    """
    place = ResultPlace(record, variant) if record else None
    if variant and not record:
        raise ConfigError("--variant names a record; use it together with --record DIR")
    if resume_ is not None:
        _check_only_resume(ctx)
        interrupted = RunFolder.read(resume_)
        spec, folder = interrupted.spec, resume_
    else:
        if data is None or method is None:
            raise ConfigError("--data and --method are needed (or --resume DIR); see caged train --help")
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
    for warning in warnings_of(spec):
        say(f"warning: {warning}")
    try:
        with progress_line(quiet=as_json and not verbose) as line, StopOnCtrlC() as stop:
            bar = EpochProgress(line)
            if resume_ is not None:
                result = resume(
                    interrupted, result_place=place, no_report=no_report, observers=(bar,), stop_requested=stop
                )
            else:
                command = command_line()
                result = start(
                    spec,
                    folder,
                    command=command,
                    result_place=place,
                    save_weights=save_weights,
                    no_report=no_report,
                    init=init,
                    observers=(bar,),
                    stop_requested=stop,
                )
    except Interrupted:
        say(f"stopped; continue with: caged train --resume {shlex.quote(str(folder))}")
        sys.exit(INTERRUPTED)
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


def _audited(result: RunResult) -> AuditResult | None:
    """The audit of the run; the run is finished and stays so, whatever happens to its audit."""
    folder, further, command = result.folder, result.further, result.run.command
    try:
        return audit_run(folder, result.data, result.evaluation, further=further, command=command)
    except CagedError as error:
        say(f"note: there is no verdict and no {REPORT}: {error}")
        return None


def _written_page(result: RunResult, audited: AuditResult) -> Path | None:
    page = result.folder.path / REPORT
    if not templates_are_there():
        say(f"note: {REPORT} is left out, because jinja2 is not installed; pip install 'caged-rec[report]'")
        return None
    try:
        write_text(page, audit_html(audited, further=run_sections(result.folder)))
    except CagedError as error:
        say(f"note: {REPORT} is left out: {error}")
        return None
    return page


def _report(result: RunResult, audited: AuditResult | None, *, as_json: bool) -> None:
    spec, run, folder = result.folder.spec, result.run, result.folder.path
    merged = run.dataset["merged_duplicates"]
    if merged:
        say(f"{merged:,} duplicate rows were merged")
    if (trained_on := result.trained_on_validation) and spec.train.refit:
        say(f"refitted: trained once more with the {trained_on:,} interactions that validation had decided on")
    elif trained_on:
        say(f"nothing is chosen on a validation part, so its {trained_on:,} interactions are trained on too")
    elif spec.data.validate_on is not None:
        held_out = run.dataset["interactions"]["valid"]
        candidates = run.dataset["split"]["notes"]["validation_candidates"]
        say(
            f"validation: the {held_out:,} of {candidates:,} held-out interactions with {spec.data.validate_on}; "
            f"the others are in train"
        )
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
    say(f"the run in {folder.path} is finished already; nothing was done")
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


def _check_only_resume(ctx: typer.Context) -> None:
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in WITH_RESUME:
            flag = "--" + name.strip("_").replace("_", "-")
            raise ConfigError(f"--resume takes the configuration of the run and nothing new; leave {flag} out")


def _stem(data: str) -> str:
    return Path(data).resolve().name.partition(".")[0]
