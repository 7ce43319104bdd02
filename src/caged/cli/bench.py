"""`caged bench`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from caged.cli.output import Verbose, number, print_json, print_table, say
from caged.files import write_json


def bench(
    only: Annotated[
        str | None, typer.Option(help="Only these: parts of names or patterns such as 'step/*', by commas.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(help="CPU threads [default: one where the target is for one, then all cores].")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds and steps: rough numbers, soon.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write results, versions and hardware to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list to stdout instead of a table.")] = False,
    verbose: Verbose = False,
) -> None:
    """Measure the engine against the plain implementation in benchmarks/, in a clone of the repository.

    Medians of interleaved rounds; ratio is the time of the plain implementation over ours. Real data is used where
    CAGED_DATA has it, else generated graphs of the same size.

    Examples:

      caged bench --only propagation --json

      caged bench --only 'step/*' --threads 2
    """
    from caged.bench import Request, record, run  # heavy, and no other command needs it

    request = Request(only, device, threads, quick)
    command = shlex.join(["caged", *sys.argv[1:]])
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)

    def keep(results: list[dict[str, Any]]) -> None:
        if out is not None:  # after each benchmark, so that whatever ends this early loses little
            write_json(out, record(results, request, command))

    results = run(request, started=lambda name: say(f"measuring {name}"), measured=keep)
    if as_json:
        print_json(results)
        return
    headers = ["benchmark", "threads", "ours, ms", "reference, ms", "ratio", "of ceiling", "data"]
    rows = [_row(result["name"], result, result["data"]) for result in results]
    beside = [_row(result["name"], result["all_cores"], result["data"]) for result in results if "all_cores" in result]
    print_table(headers, rows + beside)


def _row(name: str, result: dict[str, Any], data: str) -> list[str]:
    return [
        name,
        str(result["threads"]),
        number(1e3 * result["ours_s"], 1),
        number(1e3 * result["reference_s"], 1),
        number(result["ratio"], 2),
        number(result["fraction_of_ceiling"], 2),
        data,
    ]
