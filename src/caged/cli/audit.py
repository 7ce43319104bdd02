"""`caged audit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from caged.cli.group_options import (
    GroupSeparator,
    ItemGroups,
    ItemVectors,
    PopularShare,
    UserGroups,
    group_files,
)
from caged.cli.metrics_table import print_shown
from caged.cli.output import AsJson, Ids, Verbose, command_line, print_json, print_sentences, print_table, say
from caged.cli.progress import progress_line
from caged.config import build
from caged.data.readers.columns import Columns
from caged.errors import ConfigError
from caged.evaluation.groups import grouping
from caged.files import check_file, refuse_filled_folder, write_text
from caged.page.html import require_templates, templates_are_there
from caged.products.audit import (
    HEADERS,
    REPORT,
    Audit,
    AuditResult,
    Base,
    GateOutcome,
    ListNames,
    Verdict,
    audit_lists,
    check_gates,
    group_tables,
    judge,
    parse_gate,
    refuse_problems,
    refuse_unmeasured,
    save_audit,
    summary_rows,
    summary_title,
    sure_interval,
    to_json,
)
from caged.runs.spec import EvalConfig

GATE_FAILED = 1


def audit(
    recs: Annotated[
        str,
        typer.Argument(
            metavar="RECS",
            help="Lists of any recommender, file or folder: user_id, item_id and score or rank.",
        ),
    ],
    train: Annotated[
        str, typer.Option(help="What the recommender learned from: a log file, a dataset, or a folder with its parts.")
    ],
    test: Annotated[str | None, typer.Option(help="Held-out interactions; needed to measure accuracy.")] = None,
    valid: Annotated[
        str | None, typer.Option(help="Validation interactions; they count as seen, never as wanted.")
    ] = None,
    test_negative: Annotated[
        str | None,
        typer.Option(help="Items shown at random and not liked (--test holds those liked). See docs/metrics.md."),
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="Item table: item_id (or as in the logs) and, if you have it, title or name.")
    ] = None,
    k: Annotated[str, typer.Option("-k", help="List lengths, e.g. 20,10; the page shows the first.")] = "20",
    shown_k: Annotated[str, typer.Option(help="Cut-offs of shown_ndcg and shown_precision.")] = "5",
    shown_half: Annotated[
        str,
        typer.Option(help="Users to judge by items shown at random: all, or the first or second half of the users."),
    ] = "all",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="New folder for the audit; compare and --against can read it.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    missing: Annotated[
        str, typer.Option(help="Users with held-out interactions but no list: zero (accuracy 0) or skip.")
    ] = "zero",
    drop_seen: Annotated[
        bool, typer.Option("--drop-seen", help="Remove listed items that the user already had.")
    ] = False,
    evidence: Annotated[
        str, typer.Option(help="Where the test comes from: natural, intervened, random or oracle.")
    ] = "natural",
    also_test: Annotated[
        list[str] | None,
        typer.Option(
            help="Another test as NAME=FILE, shown beside the first; repeatable. A name such as oracle or "
            "random also says where it comes from."
        ),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with code 1 if this holds, e.g. 'tail_share@20<0.2' or 'recall@20 drops 1% surely'; repeatable."
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Folder of the run or audit that drops and rises are measured against.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name to show in titles [default: the file name].")] = None,
    user_column: Annotated[str | None, typer.Option(help="Name of the user column [default: user_id].")] = None,
    item_column: Annotated[str | None, typer.Option(help="Name of the item column [default: item_id].")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Name of the rating column [default: rating].")] = None,
    timestamp_column: Annotated[str | None, typer.Option(help="Name of the time column [default: timestamp].")] = None,
    popular_share: PopularShare = None,
    item_groups: ItemGroups = None,
    user_groups: UserGroups = None,
    group_separator: GroupSeparator = None,
    item_vectors: ItemVectors = None,
    list_user_column: Annotated[
        str | None, typer.Option(help="Name of the user column of the lists [default: as in the logs].")
    ] = None,
    list_item_column: Annotated[
        str | None, typer.Option(help="Name of the item column of the lists [default: as in the logs].")
    ] = None,
    score_column: Annotated[
        str | None,
        typer.Option(
            help="Name of the score column of the lists [default: score]. If you give only this, ranks are ignored."
        ),
    ] = None,
    rank_column: Annotated[
        str | None,
        typer.Option(
            help="Name of the rank column of the lists [default: rank]. If you give only this, scores are ignored."
        ),
    ] = None,
    ids: Ids = "auto",
    min_rating: Annotated[
        float | None, typer.Option(help="Keep only logged interactions with at least this rating.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Audit any recommender for popularity bias, from its lists and the log it learned from.

    Prints a verdict and the metrics with 95% intervals. -o saves everything, --html writes a page that opens offline,
    and --fail-if makes it a gate in your pipeline.

    Examples:

      caged audit recs.parquet --train train.parquet --test test.parquet --html report.html

      caged audit recs.csv --train log.csv --fail-if 'tail_share@20<0.2' --fail-if 'coverage@20<0.1'

      caged audit new.csv --train train.csv --test test.csv --against audits/old --fail-if 'recall@20 drops 1%'

      caged audit recs.csv --train log.csv --item-groups movies.csv:genre --fail-if 'coverage@20/genre=Drama<0.1'
    """
    asked = build(EvalConfig, {"k": k, "shown_k": shown_k, "shown_half": shown_half}, "eval")
    ks = asked.k
    gates = [parse_gate(text) for text in fail_if or ()]
    base = None if against is None else Base.read(against)
    columns = (
        Columns()
        .reading_ids(ids)
        .named(user=user_column, item=item_column, rating=rating_column, timestamp=timestamp_column)
    )
    chosen = grouping(
        popular_share,
        item_groups,
        user_groups,
        separator=group_separator,
        item_vectors=item_vectors,
        columns=columns,
    )
    check_gates(gates, ks, base, chosen.names, shown_ks=asked.shown_k)
    further = _further_tests(also_test or ())
    logs = (recs, train, test, valid, test_negative, *further.values())
    _check_places(out, html, (against, items, item_vectors, *group_files(item_groups, user_groups)), logs)
    with progress_line(quiet=as_json) as line:
        result = audit_lists(
            recs,
            train=train,
            test=test,
            valid=valid,
            test_negative=test_negative,
            items=items,
            ks=ks,
            shown_ks=asked.shown_k,
            shown_half=asked.shown_half,
            missing=missing,  # type: ignore[arg-type]
            drop_seen=drop_seen,
            evidence=evidence,  # type: ignore[arg-type]
            further_tests=further,
            name=name,
            command=command_line(),
            columns=columns,
            list_columns=ListNames(list_user_column, list_item_column, score_column, rank_column),
            min_rating=min_rating,
            chosen=chosen,
            progress=line,
        )
    if gates or base is not None:
        refuse_problems(result)
        refuse_unmeasured(gates, result)
    if base is not None:
        for note in base.check_comparable(result, gates):
            say(f"note: {note}")
    try:
        verdicts = judge(gates, result.metrics, base, interval_of=lambda gate: sure_interval(gate, result, base))
    except ConfigError:  # an interval that is missing: what was measured is there all the same
        _write(result, out, html)
        _say_where(out, html)
        raise
    result = replace(result, gates=tuple(GateOutcome(one.gate.text, one.failed, one.reason) for one in verdicts))
    _write(result, out, html)
    _report(result, verdicts, as_json=as_json, asked_half=asked.shown_half)
    _say_where(out, html)
    if any(verdict.failed for verdict in verdicts):
        raise typer.Exit(GATE_FAILED)


def _further_tests(texts: Sequence[str]) -> dict[str, str]:
    tests: dict[str, str] = {}
    for text in texts:
        name, equals, file = (part.strip() for part in text.partition("="))
        if not (name and equals and file):
            raise ConfigError(f"cannot read --also-test '{text}'; write it as NAME=FILE, e.g. oracle=oracle.parquet")
        if name in tests or name == "test":
            raise ConfigError(f"two tests are called '{name}'; give each --also-test its own name")
        tests[name] = file
    return tests


def _check_places(
    out: Path | None, html: Path | None, inputs: Sequence[str | Path | None], logs: Sequence[str | None]
) -> None:
    """Before anything is read: both outputs can be written, and neither replaces what is read."""
    if html is not None:
        require_templates()
        check_file("--html", html, inputs, logs)
    if out is not None:
        refuse_filled_folder(out)


def _write(result: AuditResult, out: Path | None, html: Path | None) -> None:
    if out is not None:
        save_audit(result, out)
        if not templates_are_there():
            say(f"note: no {REPORT} was written, because jinja2 is not installed; pip install 'caged-rec[report]'")
    if html is not None:
        write_text(html, Audit(result).to_html())


def _report(result: AuditResult, verdicts: Sequence[Verdict], *, as_json: bool, asked_half: str) -> None:
    for note in result.notes:
        say(f"note: {note}")
    for other, test in result.further.items():
        for note in test.notes:
            if note not in result.notes:
                say(f"note: {other}: {note}")
    if as_json:
        print_json({**to_json(result), "gates": [_as_json(verdict) for verdict in verdicts]})
    else:
        print_sentences(Audit(result).verdict)
        print_table(HEADERS, summary_rows(result), title=summary_title(result), spare=("users",))
        print_shown(result.metrics, result.floors, result.name, asked_half)
        for table in group_tables(result):
            print_table(table.headers, table.rows, title=table.title)
        for other, test in result.further.items():
            rows = summary_rows(test, only_accuracy=True)  # the lists are the same
            print_table(
                HEADERS,
                rows,
                title=f"The same lists against {other} (test: {test.evidence})",
                spare=("users",),
            )
    for verdict in verdicts:
        say(f"gate {'FAILED' if verdict.failed else 'passed'}: {verdict.gate.text}: {verdict.reason}")


def _as_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "expression": verdict.gate.text,
        "failed": verdict.failed,
        "metric": verdict.gate.key,
        "value": verdict.value,
        "base": verdict.base,
        "reason": verdict.reason,
        **({} if verdict.interval is None else {"interval": list(verdict.interval[:2])}),
    }


def _say_where(out: Path | None, html: Path | None) -> None:
    if out is not None:
        say(f"audit folder: {out}")
    page = html if html is not None else None if out is None or not templates_are_there() else out / REPORT
    if page is not None:
        say(f"page: {page}")
