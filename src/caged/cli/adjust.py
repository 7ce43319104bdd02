"""`caged adjust`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from caged.arguments import choice
from caged.cli.output import AsJson, Ids, Verbose, command_line, print_json, print_sentences, print_table, say
from caged.cli.table_file import check_table_file, write_table
from caged.data.readers.columns import Columns
from caged.errors import ConfigError
from caged.evaluation.adjust.choice import FORMS, KEEP, Form, checked_share, parsed_share
from caged.files import check_file, refuse_filled_folder, write_text
from caged.models import display_name
from caged.page.html import require_templates
from caged.products.adjust import (
    ListsToAdjust,
    Outcome,
    adjust_lists,
    adjustment_html,
    change_table,
    curve_tables,
    sentences,
)
from caged.products.audit import ListNames
from caged.runs.folder import RunFolder
from caged.runs.results import ResultPlace


@dataclass(frozen=True)
class _Wish:
    """What was asked for."""

    form: Form
    k: int
    strength: float | None
    keep: float
    with_curve: bool

    def options(self) -> dict[str, Any]:
        return {"k": self.k, "strength": self.strength, "keep": self.keep, "with_curve": self.with_curve}


def adjust(
    what: Annotated[
        Path,
        typer.Argument(help="Folder of a finished run, a file of lists, or (with --item-vectors) the user vectors."),
    ],
    form: Annotated[str, typer.Option(help="degree, norm (vectors only) or quota (lists only).")] = "degree",
    keep: Annotated[
        str | None, typer.Option(help="Share of validation recall to keep; this sets the strength [default: 99%].")
    ] = None,
    strength: Annotated[float | None, typer.Option(help="Strength from 0 to 1, instead of --keep.")] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Show the cost and gain of every strength.")] = False,
    k: Annotated[int, typer.Option("-k", help="Length of the lists.")] = 20,
    train: Annotated[
        str | None, typer.Option(help="The log that the recommender learned from (for lists and vectors).")
    ] = None,
    valid: Annotated[str | None, typer.Option(help="Validation interactions, used to choose the strength.")] = None,
    test: Annotated[str | None, typer.Option(help="Test interactions, used to show the price.")] = None,
    item_vectors: Annotated[Path | None, typer.Option(help="Item vectors of another recommender.")] = None,
    user_column: Annotated[str | None, typer.Option(help="Name of the user column [default: user_id].")] = None,
    item_column: Annotated[str | None, typer.Option(help="Name of the item column [default: item_id].")] = None,
    score_column: Annotated[str | None, typer.Option(help="Name of the score column of the lists.")] = None,
    rank_column: Annotated[str | None, typer.Option(help="Name of the rank column of the lists.")] = None,
    ids: Ids = "auto",
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="New folder (run or vectors), or a .parquet or .csv file (lists)."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the page with the curve to this file.")] = None,
    record: Annotated[
        Path | None,
        typer.Option(help="Also save the result of an adjusted run as a small JSON file under this folder."),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="Name for this variant of the method in --record [default: adjusted].")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Take popularity out of a recommender after training, and see the price.

    Uses the largest strength that keeps 99% of the validation recall (change it with --keep), or the one you set with
    --strength. Without -o it only shows the price and writes nothing. With -o, a run becomes a new run folder; you can
    recommend from it, evaluate, compare and audit it like any other.

    Examples:

      caged adjust runs/first -o runs/first-adjusted

      caged adjust runs/first --curve --html curve.html

      caged adjust recs.parquet --train train.csv --valid valid.csv --test test.csv --keep 98% -o adjusted.parquet
    """
    wish = _Wish(
        _form(form),
        k,
        None if strength is None else checked_share("--strength", strength),
        _kept(keep, strength),
        curve or html is not None,
    )
    if html is not None:
        require_templates()
        check_file("--html", html, (what, item_vectors), (train, valid, test))
    if not what.exists():
        raise ConfigError(
            f"{what} does not exist; give the folder of a finished run, a file of lists, or vectors of users"
        )
    place = _place(record, variant, out, is_run=RunFolder.is_one(what))
    if RunFolder.is_one(what):
        _refuse_logs(train=train, valid=valid, test=test, item_vectors=item_vectors)
        outcome = _of_run(what, wish, out, device, place)
        run = RunFolder.read(what).run
        name = f"{display_name(run.method_name)} on {run.dataset['name']}"
    elif item_vectors is not None:
        columns = Columns().reading_ids(ids).named(user=user_column, item=item_column)
        outcome = _of_vectors(what, item_vectors, wish, out, train=train, valid=valid, test=test, columns=columns)
        name = what.stem
    else:
        columns = Columns().reading_ids(ids).named(user=user_column, item=item_column)
        names = ListNames(None, None, score_column, rank_column)
        outcome = _of_lists(what, wish, out, train=train, valid=valid, test=test, columns=columns, list_columns=names)
        name = what.stem
    if html is not None:
        write_text(html, adjustment_html(outcome, name, command_line()))
    _report(outcome, as_json=as_json, with_curve=curve)
    for said, written in (("adjusted", out), ("page", html)):
        if written is not None:
            say(f"{said}: {written}")


def _form(text: str) -> Form:
    form: Form = choice("--form", text, FORMS)  # type: ignore[assignment]
    return form


def _kept(text: str | None, strength: float | None) -> float:
    """`99%` or `0.99`."""
    if text is None:
        return KEEP
    if strength is not None:
        raise ConfigError("--keep and --strength both set the strength; use only one of them")
    return parsed_share("--keep", text)


def _place(record: Path | None, variant: str | None, out: Path | None, *, is_run: bool) -> ResultPlace | None:
    """Of the record that was asked for."""
    if record is None:
        if variant is not None:
            raise ConfigError("--variant works only with --record DIR; add it, or leave --variant out")
        return None
    if out is None or not is_run:
        raise ConfigError(
            "--record needs a run that is written; give the folder of a finished run and -o, or leave it out"
        )
    return ResultPlace(record, variant or "adjusted")


def _refuse_logs(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise ConfigError(f"a run knows its own data; leave {option} out, or give lists instead of a run")


def _of_run(path: Path, wish: _Wish, out: Path | None, device: str, place: ResultPlace | None) -> Outcome:
    from caged.products.adjust import RunToAdjust, adjust_run, write_adjusted_run  # with torch
    from caged.runs.environment import resolve_device

    if out is not None:
        refuse_filled_folder(out)
    given = RunToAdjust.read(path, resolve_device(device))
    if place is not None:
        given.record_in(place)  # before the work
    if wish.form == "norm" and given.norm_does_nothing:
        say("note: all item vectors of this run have the same length, so form norm changes nothing; use --form degree")
    outcome = adjust_run(given, wish.form, **wish.options())
    if out is not None:
        write_adjusted_run(given, outcome, out, command=command_line(), result_place=place)
    return outcome


def _of_vectors(users: Path, items: Path, wish: _Wish, out: Path | None, *, train: str | None, **how: Any) -> Outcome:
    from caged.products.adjust import VectorsToAdjust, adjust_vectors, check_vector_files  # with torch

    if train is None:
        raise ConfigError("adjusting vectors needs the log they were trained on; give --train")
    suffix = check_vector_files(users, items)
    if out is not None:
        refuse_filled_folder(out)
    given = VectorsToAdjust.read(users, items, train, **how)
    outcome = adjust_vectors(given, wish.form, **wish.options())
    if out is not None:
        given.write(outcome.adjustment, out, suffix)
    return outcome


def _of_lists(path: Path, wish: _Wish, out: Path | None, *, train: str | None, **how: Any) -> Outcome:
    if train is None:
        raise ConfigError(
            f"{path} is not a run folder, so it must hold lists, and adjusting lists needs the log their recommender "
            f"learned from; give --train"
        )
    if out is not None:
        check_table_file(out)
        check_file("--out", out, [path], (train, how["valid"], how["test"]))
    given = ListsToAdjust.read(str(path), train, **how)
    for note in given.notes:
        say(f"note: {note}")
    outcome = adjust_lists(given, wish.form, **wish.options())
    if out is not None:
        table, short = given.table(outcome.adjustment, wish.k)
        write_table(table, out)
        if short:
            say(f"note: {short:,} lists have too few niche candidates for the quota; they use all they have")
    return outcome


def _report(outcome: Outcome, *, as_json: bool, with_curve: bool) -> None:
    if as_json:
        print_json(outcome.to_json())
        return
    print_sentences(sentences(outcome))
    for table in [change_table(outcome), *(curve_tables(outcome) if with_curve else ())]:
        print_table(table.headers, table.rows, title=table.title, keys=table.keys, spare=table.spare)
