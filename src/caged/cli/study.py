"""`caged study`."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from caged.arguments import at_least_one
from caged.cli.help import group
from caged.cli.output import INTERRUPTED, AsJson, Verbose, print_json, print_sentences, print_table, say
from caged.cli.progress import StopOnCtrlC, progress_line
from caged.cli.study_shown import figures, listed, tables
from caged.page.text_table import TextTable
from caged.products.study import (
    Study,
    Wishes,
    make_study,
    outcome_json,
    outcome_sentences,
    read_plan,
    run_study,
    schedule_json,
    schedule_sentences,
    schedule_tables,
    status_tables,
)
from caged.products.tune import seconds_in
from caged.signals import ENDED_BY

app = group(
    "Run a plan of many runs within a budget, see how far it is, and show its tables and figures.", no_args_is_help=True
)

PlanFile = Annotated[Path, typer.Argument(help="Plan (TOML), such as studies/paper.toml.")]
Only = Annotated[
    str | None,
    typer.Option(
        help="Which runs, by dataset, protocol, section and row of the plan, e.g. epinions,honest,main [default: all]."
    ),
]
Seeds = Annotated[int | None, typer.Option(help="Only the first so many seeds of each row.")]
Record = Annotated[
    Path | None, typer.Option(help="Folder with the records, read and written [default: where the plan has them].")
]
Runs = Annotated[Path, typer.Option(help="Folder for the run folders and their logs.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


@app.command("run")
def run(
    plan: PlanFile,
    budget: Annotated[
        str | None, typer.Option(help="Time to run, such as 9m or 2h; what is left goes on another day.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume/--restart", help="Go on from the checkpoints of stopped runs, or start these anew."),
    ] = True,
    workers: Annotated[int, typer.Option(help="Runs side by side.")] = 1,
    only: Only = None,
    seeds: Seeds = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Also run what failed before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be run, and stop.")] = False,
    record: Record = None,
    runs: Runs = Path("runs"),
    device: Device = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run what a plan holds and what is not recorded yet.

    Shows first which runs are to come and what they will take, estimated from recorded ones. A run whose estimate
    exceeds what is left of --budget is not started; at its end the run in progress stops with a checkpoint. Call it
    again to go on, also on another machine that has only the plan and its records. Failed runs are recorded with their
    reason and not tried again without --retry-failed.

    Examples:

      caged study run studies/paper.toml --dry-run

      caged study run studies/paper.toml --only epinions,honest,main,lightgcn,softmax --seeds 1 --record my-results

      caged study run studies/paper.toml --budget 9m --workers 3
    """
    seconds = None if budget is None else seconds_in(budget)
    at_least_one("--workers", workers)
    wishes = Wishes(retry_failed=retry_failed, restart=not resume)
    study = _study(plan, only, seeds, record, runs, device, wishes)
    if not as_json:
        _show(schedule_tables(study.schedule))
        print_sentences(schedule_sentences(study))
    if dry_run or not study.schedule.tasks:
        if as_json:
            print_json({**schedule_json(study), "outcome": None})
        if not dry_run and (study.schedule.blocked or study.schedule.failed):
            sys.exit(1)
        return
    threads = max(1, (os.cpu_count() or 1) // workers) if workers > 1 and study.device == "cpu" else None
    with progress_line(quiet=as_json and not verbose) as line, StopOnCtrlC(*ENDED_BY) as stop:
        outcome = run_study(
            study,
            budget=seconds,
            workers=workers,
            threads=threads,
            stop_requested=stop,
            report=line,
            say=say,
        )
    if as_json:
        print_json({**schedule_json(study), "outcome": outcome_json(outcome)})
    else:
        print_sentences(outcome_sentences(outcome))
    if outcome.stopped or outcome.waiting or outcome.too_long:
        say(f"to go on: {shlex.join(['caged', *sys.argv[1:]])}")
    if stop():
        sys.exit(INTERRUPTED)
    if outcome.failed or outcome.refused:
        sys.exit(1)


@app.command("status")
def status(
    plan: PlanFile,
    only: Only = None,
    seeds: Seeds = None,
    record: Record = None,
    runs: Runs = Path("runs"),
    device: Device = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show how much of a plan is recorded, what failed and why, and what is still to be run.

    Examples:

      caged study status studies/paper.toml

      caged study status studies/paper.toml --only movie,paper
    """
    study = _study(plan, only, seeds, record, runs, device, Wishes())
    if as_json:
        print_json(schedule_json(study))
        return
    _show([*status_tables(study), *(schedule_tables(study.schedule) if only or verbose else [])])
    print_sentences(schedule_sentences(study))


app.command("tables")(tables)
app.command("figures")(figures)


def _study(
    plan: Path, only: str | None, seeds: int | None, record: Path | None, runs: Path, device: str, wishes: Wishes
) -> Study:
    if seeds is not None:
        at_least_one("--seeds", seeds)
    words = listed(only)
    return make_study(read_plan(plan), results=record, runs=runs, only=words, seeds=seeds, device=device, wishes=wishes)


def _show(tables: list[TextTable]) -> None:
    for table in tables:
        print_table(table.headers, table.rows, title=table.title, keys=table.keys, spare=table.spare)
