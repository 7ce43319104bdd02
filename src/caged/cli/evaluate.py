"""`caged evaluate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from caged.cli.group_options import (
    OWN,
    GroupSeparator,
    ItemGroups,
    ItemVectorsOrOwn,
    PopularShare,
    UserGroups,
    group_files,
)
from caged.cli.metrics_table import print_chosen, print_metrics, print_shown
from caged.cli.output import AsJson, Verbose, command_line, print_json, say
from caged.config import build, to_dict
from caged.errors import ConfigError, unknown
from caged.evaluation.groups import grouping
from caged.files import check_file, write_text
from caged.page.html import require_templates
from caged.products.audit import audit_html, audit_run, run_sections
from caged.runs.artefact import load_artefact
from caged.runs.environment import resolve_device
from caged.runs.execute import evaluate_part, holds_back_validation, warnings_of
from caged.runs.folder import RunFolder
from caged.runs.spec import EvalConfig
from caged.runs.vectors import item_vectors_of


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    k: Annotated[str | None, typer.Option("-k", help="List lengths, e.g. 10,20 [default: as in the run].")] = None,
    part: Annotated[
        str, typer.Option(help="test, valid, or another test of the dataset (yelp2018-ood has test_ood).")
    ] = "test",
    shown_half: Annotated[
        str | None,
        typer.Option(
            help="Users to judge by items shown at random: all, or the first or second half of the users "
            "[default: as in the run]."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    popular_share: PopularShare = None,
    item_groups: ItemGroups = None,
    user_groups: UserGroups = None,
    group_separator: GroupSeparator = None,
    item_vectors: ItemVectorsOrOwn = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Evaluate a finished run again, at other list lengths or on another part.

    Reads the data of the run again and checks that it has not changed.

    Examples:

      caged evaluate runs/first -k 5,10,20

      caged evaluate runs/first --part valid --html valid.html

      caged evaluate runs/first --popular-share 0.1 --item-groups movies.csv:genre --html genres.html

      caged evaluate runs/first --item-vectors own
    """
    if html is not None:
        require_templates()
        check_file("--html", html, (run, item_vectors, *group_files(item_groups, user_groups)))
    folder = RunFolder.read(run)
    spec, data = folder.spec, folder.load_data("the run; restore it to evaluate the run again")
    named = {**data.split.parts, **data.extra_tests}
    for never_evaluated in ("train", "test_negative", "valid_negative"):
        named.pop(never_evaluated, None)
    if part == "valid" and part not in named:
        raise ConfigError(f"protocol '{spec.protocol}' has no validation part; use --part test")
    if part == "valid" and not holds_back_validation(spec):
        raise ConfigError(
            f"this {spec.method} was trained on the validation part too, so it says nothing there; use --part test, or "
            + ("train without --refit" if spec.train.refit else "train with --set train.validation=yes")
        )
    if part not in named:
        raise ConfigError(unknown("part", part, named))
    for warning in warnings_of(spec):
        say(f"warning: {warning}")
    for note in data.facts["notes"]:
        say(f"note: {note}")
    given = {"k": k, "popular_share": popular_share, "shown_half": shown_half}
    changed = {name: value for name, value in given.items() if value is not None}
    spec = replace(spec, eval=build(EvalConfig, {**to_dict(spec.eval), **changed}, "eval"))
    where = resolve_device(device)
    fitted = load_artefact(run, where)
    chosen = grouping(
        spec.eval.popular_share,
        item_groups,
        user_groups,
        separator=group_separator,
        item_vectors=item_vectors_of(spec.method, fitted) if item_vectors == OWN else item_vectors,
        columns=spec.data.columns(),
    )
    model = fitted.scorer()
    evaluation = evaluate_part(model, data.split, named[part], spec, where, chosen)
    report = evaluation.report
    for note in evaluation.reference.groups.notes:
        say(f"note: {note}")

    if html is not None:
        # What stands beside the test on the page: the further tests that come with the dataset.
        others = data.extra_tests if part == "test" else {}
        further = {name: evaluate_part(model, data.split, other, spec, where, chosen) for name, other in others.items()}
        command = command_line()
        audited = audit_run(folder, data, evaluation, part=part, further=further, command=command)
        write_text(html, audit_html(audited, further=run_sections(folder)))
    if as_json:
        print_json(
            {
                "protocol": spec.protocol,
                "part": part,
                "metrics": report.metrics,
                "users": report.users_per_metric,
                **({"shown_half": spec.eval.shown_half, "shown_floors": report.floors} if report.floors else {}),
            }
        )
    else:
        print_metrics(report.metrics, spec.eval.k, f"{spec.method}, protocol {spec.protocol}, {part} part")
        print_shown(report.metrics, report.floors, spec.method, spec.eval.shown_half)
        print_chosen(report.metrics, spec.eval.k, chosen.names)
    if html is not None:
        say(f"page: {html}")
