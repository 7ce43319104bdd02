"""`caged evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caged.cli.metrics_table import print_metrics
from caged.cli.output import AsJson, Verbose, print_json, say
from caged.config import build, to_dict
from caged.errors import ConfigError, RunError, unknown
from caged.evaluation.evaluate import evaluate as evaluate_part
from caged.experiments.artefact import load_artefact
from caged.experiments.environment import resolve_device
from caged.experiments.protocols import protocol_named
from caged.experiments.run import evaluate_test, load_split_of, warnings_of
from caged.experiments.spec import EvalConfig

PARTS = ("test", "valid")


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    k: Annotated[str | None, typer.Option("-k", help="List lengths, e.g. 10,20 [default: those of the run].")] = None,
    part: Annotated[str, typer.Option(help="test or valid.")] = "test",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Evaluate a finished run again, for example at other list lengths.

    The data of the run is read again and checked against its fingerprint.

    Example: caged evaluate runs/first -k 5,10,20
    """
    if part not in PARTS:
        raise ConfigError(unknown("part", part, PARTS))
    spec, parts = load_split_of(run)
    for warning in warnings_of(spec):
        say(f"warning: {warning}")
    chosen = spec.eval if k is None else build(EvalConfig, {**to_dict(spec.eval), "k": k}, "eval")
    protocol = protocol_named(spec.protocol)
    where = resolve_device(device)
    method = load_artefact(run, where).method
    if part == "test":
        evaluation = evaluate_test(method, parts, protocol, chosen, where)
    elif parts.valid is None:
        raise RunError(f"protocol '{spec.protocol}' has no validation part; use --part test")
    else:
        evaluation = evaluate_part(
            method.scorer(),
            train=parts.train,
            valid=None,
            relevant=parts.valid,
            ks=chosen.k,
            metrics=protocol.metrics(chosen.k),
            device=where,
        )
    report = evaluation.report
    if as_json:
        print_json(
            {"protocol": spec.protocol, "part": part, "metrics": report.metrics, "users": report.users_per_metric}
        )
        return
    print_metrics(report.metrics, chosen.k, f"{spec.method}, protocol {spec.protocol}, {part} part")
