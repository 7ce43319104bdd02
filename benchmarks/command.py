"""The command `python -m benchmarks`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.profile import profile_rows
from benchmarks.run import Request, record, run
from caged.cli.output import Verbose, print_json, print_table, say
from caged.files import make_parent, write_json
from caged.page.numbers import number


def bench(
    only: Annotated[
        str | None, typer.Option(help="Only these: parts of names or patterns such as 'step/*', by commas.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(help="CPU threads [default: one where the target is for one, then all cores].")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds and steps: rough numbers, soon.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also show what a training step is made of: step, epoch, methods.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Also write results, versions and hardware to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list to stdout instead of a table.")] = False,
    verbose: Verbose = False,
) -> None:
    """Measure the engine against the plain implementation in benchmarks/, in a clone of the repository.

    Medians of interleaved rounds; ratio is the time of the plain implementation over ours. Real data is used where
    CAGED_DATA has it, else generated graphs of the same size.

    Examples:

      python -m benchmarks --only propagation --json

      python -m benchmarks --only 'step/*' --threads 2

      python -m benchmarks --only 'methods/reg*,methods/macr*' --profile
    """
    request = Request(only, device, threads, quick, profile)

    def begin(name: str) -> None:
        if out is not None:  # only now is everything else known to be right
            make_parent(out)
        say(f"measuring {name}")

    def keep(results: list[dict[str, Any]]) -> None:
        if out is not None:  # after each benchmark, so that whatever ends this early loses little
            write_json(out, record(results, request))

    results = run(request, started=begin, measured=keep)
    if as_json:
        print_json(results)
        return
    headers = ["benchmark", "threads", "ours, ms", "reference, ms", "ratio", "of ceiling", "data"]
    rows = [_row(result["name"], result, result["data"]) for result in results]
    beside = [_row(result["name"], result["all_cores"], result["data"]) for result in results if "all_cores" in result]
    print_table(headers, rows + beside)
    if parts := [
        row for result in results if "profile" in result for row in profile_rows(result["name"], result["profile"])
    ]:
        print_table(["benchmark", "us a step", "calls", "of which"], parts)


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
