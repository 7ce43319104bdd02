"""`caged recommend`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from caged.cli.output import AsJson, Verbose, print_json, print_table, say
from caged.cli.table_file import check_table_file, write_table
from caged.data import IdMap
from caged.data.readers.files import DEFAULT_COLUMNS, read_part
from caged.errors import ConfigError, unknown
from caged.evaluation.lists import USUAL_K
from caged.files import check_file
from caged.page.numbers import number
from caged.runs.folder import RunFolder
from caged.runs.recommender import load

UNKNOWN = ("error", "popular", "skip")


def recommend(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run or of a saved model.")],
    users: Annotated[str | None, typer.Option(help="User ids, separated by commas.")] = None,
    users_file: Annotated[Path | None, typer.Option(help="File with one user id per line.")] = None,
    all_users: Annotated[
        bool, typer.Option("--all-users", help="Recommend to every user in the training part.")
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(
            help="Recommend to new people from their history: a table of user_id and item_id, or one item id per line."
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("-k", help=f"Length of the lists (default: {USUAL_K}, or all items where there are fewer)."),
    ] = None,
    unknown_users: Annotated[
        str,
        typer.Option(
            "--unknown",
            help="What to do about users not seen in training: error, popular (most popular items) or skip.",
        ),
    ] = "error",
    candidates_file: Annotated[
        Path | None, typer.Option(help="Recommend only the item ids in this file, one per line.")
    ] = None,
    exclude_file: Annotated[
        Path | None, typer.Option(help="Never recommend the item ids in this file, one per line.")
    ] = None,
    titles: Annotated[
        bool, typer.Option("--titles", help="Add item titles to files and JSON; tables always show them.")
    ] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write a .parquet or .csv file instead.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Recommend items that users have not seen yet, with the ids of your log.

    Examples:

      caged recommend runs/first --users 12,57 -k 20

      caged recommend runs/first --all-users -o recs.parquet

      caged recommend runs/first --history basket.csv

      caged recommend runs/first --users-file users.txt --candidates-file in-stock.txt --exclude-file sold-out.txt
    """
    if sum((users is not None, users_file is not None, all_users, history is not None)) != 1:
        raise ConfigError(
            "say who gets recommendations: exactly one of --users, --users-file, --all-users and --history"
        )
    if history is not None and (candidates_file or exclude_file):
        raise ConfigError("--candidates-file and --exclude-file do not work with --history; leave them out")
    if unknown_users not in UNKNOWN:
        raise ConfigError(unknown("value for --unknown", unknown_users, UNKNOWN))
    if out is not None:
        check_table_file(out)
        check_file("--out", out, (run, users_file, history, candidates_file, exclude_file))
    new_people = None if history is None else _new_people(history)
    model = load(run, device=device)
    names = _titles(run, asked_for=titles, table=out is None and not as_json)
    length = min(USUAL_K, model.artefact.train.item_count) if k is None else k
    if new_people is not None:
        table = model.recommend_for(new_people, length, titles=names or False)
    else:
        wanted = None if all_users else _wanted(users, users_file)
        if users is not None:
            _refuse_split_names(users, model.artefact.train.user_ids)
        table = model.recommend(
            wanted,
            length,
            unknown=unknown_users,  # type: ignore[arg-type]  # checked above
            candidates=None if candidates_file is None else _lines("--candidates-file", candidates_file, "item"),
            exclude=None if exclude_file is None else _lines("--exclude-file", exclude_file, "item"),
            titles=names or False,
        )
        if wanted is not None and unknown_users == "skip":
            _say_left_out(wanted, model.artefact.train.user_ids)
    if out is not None:
        write_table(table, out)
        say(f"{len(table):,} rows written to {out}")
    elif as_json:
        print_json(table.to_pylist())
    else:
        headers = ["user_id", "rank", "item_id", *(["title"] if names else []), "score"]
        shown = [{**row, "score": number(row["score"]), "title": row.get("title") or ""} for row in table.to_pylist()]
        print_table(headers, [[str(row[header]) for header in headers] for row in shown])


def _wanted(users: str | None, users_file: Path | None) -> list[str]:
    if users is None:
        assert users_file is not None
        return _lines("--users-file", users_file, "user")
    texts = [text.strip() for text in users.split(",") if text.strip()]
    if not texts:
        raise ConfigError("no user id given; list at least one")
    return texts


def _new_people(file: Path) -> Any:
    """A table of user_id and item_id as it is; a list of item ids belongs to one person, called new."""
    if file.suffix in (".txt", ".csv"):
        lines = _lines("--history", file, "item")
        if "," not in lines[0]:
            return {"new": lines[1:] if lines[0] == "item_id" else lines}
    log = read_part(file, columns=DEFAULT_COLUMNS)
    return pa.table({"user_id": log.user_ids.external(log.users), "item_id": log.item_ids.external(log.items)})


def _lines(option: str, file: Path, kind: str) -> list[str]:
    """The ids in a file, one per line."""
    try:
        texts = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {option} {file} ({error}); give a UTF-8 text file") from error
    texts = [text for text in texts if text]
    if not texts:
        raise ConfigError(f"no {kind} id given in {option} {file}; list at least one")
    return texts


def _titles(run: Path, *, asked_for: bool, table: bool) -> dict[Any, str]:
    """Of the items, as far as the data of the run has any; to be missing them is an error for who asked for them."""
    known = RunFolder.read(run).titles() if RunFolder.is_one(run) and (asked_for or table) else {}
    if asked_for and not known:
        raise ConfigError(f"the data of {run} has no titles; leave --titles out")
    return known


def _refuse_split_names(users: str, known: IdMap) -> None:
    """An id that holds a comma itself was torn apart; which nobody sees where unknown users are skipped."""
    parts = users.split(",")
    if bool((known.rows([part.strip() for part in parts]) >= 0).all()):
        return
    names = [users.strip(), *(f"{one},{other}".strip() for one, other in pairwise(parts))]
    torn = [name for name, row in zip(names, known.rows(names), strict=True) if row >= 0 and "," in name]
    if torn:
        raise ConfigError(
            f"--users splits ids at commas, but '{torn[0]}' is one id of this run; put it on its own line in a file "
            f"and use --users-file"
        )


def _say_left_out(wanted: list[str], known: IdMap) -> None:
    if left_out := int((known.rows(list(set(wanted))) < 0).sum()):
        say(f"note: skipped {left_out:,} unknown user{'' if left_out == 1 else 's'}")
