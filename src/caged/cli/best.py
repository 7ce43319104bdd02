"""`caged best`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from caged.cli.output import (
    INTERRUPTED,
    AsJson,
    Ids,
    Verbose,
    command_line,
    print_json,
    print_sentences,
    print_table,
    print_text,
    say,
)
from caged.cli.progress import StopOnCtrlC, progress_line
from caged.config import build
from caged.evaluation.adjust.choice import parsed_share
from caged.files import read_sealed_json
from caged.products.best import (
    FILE,
    PAGE,
    AlreadyFinished,
    Answer,
    Wish,
    answer_json,
    answer_sentences,
    answer_tables,
    find_best,
    next_commands,
    time_sentence,
)
from caged.runs.spec import DataConfig
from caged.training import Interrupted


def best(
    log: Annotated[
        str, typer.Argument(help="Log file (.csv, .tsv, .parquet, ...), dataset name, or folder with parts.")
    ],
    minutes: Annotated[float, typer.Option(help="Time for everything.")] = 20.0,
    keep: Annotated[
        str, typer.Option(help="Share of the best recall to keep; within it, the most niche recall wins.")
    ] = "99%",
    out: Annotated[Path, typer.Option(help="New folder for the model and the pages.")] = Path("best"),
    resume_: Annotated[
        bool, typer.Option("--resume", help="Go on where the same command was stopped or killed.")
    ] = False,
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
    split: Annotated[
        str, typer.Option(help="How the log is split: random, time, leave_last_out or intervened.")
    ] = "random",
    seed: Annotated[int, typer.Option(help="Seed of the trainings.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="CPU threads [default: all cores].")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Find the best model for a log, and write it ready to recommend.

    Splits the log, tunes bestsellers, EASE, LightGCN and softmax with equal chances, and takes popularity out of what
    they learned. Chooses on the validation part: of all whose recall is within 1% of the best, the one that finds most
    niche items. Tests it once, trains it on the whole log, and writes the model, a page, and audits of bestsellers and
    of the chosen model. Stays within --minutes.

    Examples:

      caged best log.csv

      caged best orders.csv --user-column customer --item-column sku --minutes 10 --out best

      caged best log.csv --resume
    """
    columns = {"user_column": user_column, "item_column": item_column, "rating_column": rating_column}
    columns |= {"timestamp_column": timestamp_column, "ids": ids}
    chosen = {**columns, "min_rating": min_rating, "k_core": k_core, "split": split}
    data = build(DataConfig, {name: value for name, value in chosen.items() if value is not None}, "data")
    wish = Wish(
        log, minutes=minutes, keep=parsed_share("--keep", keep), seed=seed, device=device, threads=threads, data=data
    )
    command = shlex.join(word for word in shlex.split(command_line()) if word != "--resume")
    try:
        with progress_line(quiet=as_json and not verbose) as line, StopOnCtrlC() as stop:
            if resume_ and not out.exists():
                say(f"note: {out} does not exist, so there is nothing to go on with: a new search begins")
            answer = find_best(wish, out, go_on=resume_, command=command, report=line, stop_requested=stop)
    except Interrupted:
        say(f"stopped; continue with: {command} --resume")
        sys.exit(INTERRUPTED)
    except AlreadyFinished:
        _report_finished(out, as_json=as_json)
        return
    _report(answer, as_json=as_json)


def _report(answer: Answer, *, as_json: bool) -> None:
    for note in answer.notes:
        say(f"note: {note}")
    if as_json:
        print_json(answer_json(answer))
        return
    print_sentences(answer_sentences(answer))
    for table in answer_tables(answer):
        print_table(table.headers, table.rows, title=table.title, keys=table.keys, spare=table.spare)
    commands = "\n".join(f"  {command}" for _, command in next_commands(answer))
    print_text(f"\nGo on with:\n{commands}")
    say(time_sentence(answer))
    say(f"page: {answer.folder / PAGE}")


def _report_finished(folder: Path, *, as_json: bool) -> None:
    """Loops that resume until it works end here: that there is nothing left to do is no failure."""
    say(f"the search in {folder} is already finished; see {folder / PAGE}")
    found = read_sealed_json(folder / FILE)
    if as_json:
        print_json(found)
    else:
        print_sentences(found["sentences"])
