"""`caged plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from caged.arguments import counted
from caged.cli.output import AsJson, Verbose, print_json, print_sentences, print_table, say
from caged.errors import ConfigError
from caged.page.numbers import number
from caged.runs.planning.machine import available_memory
from caged.runs.planning.plan import GIB, Plan, gib
from caged.runs.planning.plan import plan as make_plan
from caged.runs.planning.workload import Workload

AUTO = "auto"


def plan(
    users: Annotated[str, typer.Option(help="How many, e.g. 20M.", show_default=False)],
    items: Annotated[str, typer.Option(help="How many, e.g. 2M.", show_default=False)],
    interactions: Annotated[str, typer.Option(help="Training interactions, e.g. 1B.", show_default=False)],
    k: Annotated[int, typer.Option("--k", min=1, help="Columns of the tables (method.embedding_size).")] = 64,
    layers: Annotated[int, typer.Option(min=0, help="Layers (method.layers).")] = 3,
    method: Annotated[str, typer.Option(help="Method, e.g. lightgcn or softmax.")] = "lightgcn",
    device: Annotated[str, typer.Option(help="cuda or cpu.")] = "cuda",
    devices: Annotated[int, typer.Option(min=1, help="Processes that share the columns, each with a device.")] = 1,
    memory: Annotated[
        float | None,
        typer.Option(help="GiB that one device has [default: that of the measured GPU; of a CPU, what is free here]."),
    ] = None,
    batch_size: Annotated[str, typer.Option(help="Triples per step, or auto.")] = AUTO,
    validation_users: Annotated[
        str | None, typer.Option(help="Users that a validation ranks for (train.validation_users) [default: all].")
    ] = None,
    no_validation: Annotated[bool, typer.Option("--no-validation", help="As in caged train.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Predict the memory and the time of a training, and what to change if it does not fit.

    The memory is that of one device at the worst moment, be it the final test of every user. The time is that of the
    device whose rates were measured. --verbose lists every allocation.

    Examples:

      caged plan --users 20M --items 2M --interactions 1B --k 64 --layers 2

      caged plan --users 20M --items 2M --interactions 1B --k 256 --memory 80 --json
    """
    user_count = counted("--users", users)
    work = Workload(
        users=user_count,
        items=counted("--items", items),
        interactions=counted("--interactions", interactions),
        embedding_size=k,
        layers=layers,
        method=method,
        device=device,
        devices=devices,
        batch_size=None if batch_size == AUTO else counted("--batch-size", batch_size),
        validated=not no_validation,
        validation_users=None if validation_users is None else counted("--validation-users", validation_users),
        tested_users=user_count,
    )
    made = make_plan(work, _memory(memory, work))
    if not made.memory_bytes:
        raise ConfigError("how much memory the machine has is not known; say it with --memory GIB")
    if as_json:
        print_json(made.to_json())
        return
    _print(made, verbose=verbose)


def _memory(memory: float | None, work: Workload) -> int | None:
    """Bytes of one device; None: those of the device whose rates were measured. Ranks on CPU share a machine."""
    if memory is None:
        free = available_memory() if work.device == "cpu" else None
        return None if free is None else free // work.devices
    if not 0 < memory < 2**30:
        raise ConfigError(f"--memory is {memory:g}; give the GiB of one device, such as 80")
    return round(memory * GIB)


def _print(made: Plan, *, verbose: bool) -> None:
    work, needed = made.work, made.needed
    rows = [
        ["memory of a device, at most", gib(needed.peak)],
        ["it has", gib(made.memory_bytes)],
        ["an epoch without validation", f"{number(made.seconds, 3)} s"],
        ["steps of an epoch", f"{work.steps:,}"],
        ["triples of a step", f"{work.batch:,}"],
    ]
    print_table(["plan", "predicted"], rows)
    if verbose:
        print_table(
            ["allocation", "when", "size"],
            [[one.name, one.when, gib(one.bytes)] for one in needed.at_peak],
        )
    print_sentences(["It fits." if made.fits else "It does not fit: " + "; or ".join(made.advice) + "."])
    say(f"rates: {made.rates.name} ({made.rates.source})")
    for note in made.notes:
        say(f"note: {note}")
