"""`caged methods`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from caged.cli.help import group
from caged.cli.output import AsJson, Verbose, print_json, print_table
from caged.config import OptionInfo, value_text
from caged.models import METHODS, registered
from caged.runs.catalogue import method_options, training_options
from caged.runs.presets import own_options, preset_names

app = group("List the methods and their parameters.", invoke_without_command=True)


@app.callback()
def methods(ctx: typer.Context, as_json: AsJson = False, verbose: Verbose = False) -> None:
    """List the methods. caged methods show NAME prints every parameter and its default."""
    if ctx.invoked_subcommand is None:
        list_methods(as_json=as_json)


@app.command("list")
def list_methods(as_json: AsJson = False, verbose: Verbose = False) -> None:
    """List the methods with one line about each."""
    if as_json:
        print_json([{"name": known.name, "title": known.title} for known in METHODS.values()])
        return
    print_table(["method", "what it is"], [[known.name, known.title] for known in METHODS.values()])


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of the method.")],
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Print every parameter of a method: default, allowed values and where the default comes from."""
    known = registered(name)
    own = method_options(name)
    sections = {"method": own.options, **({"train": training_options().options} if own.trained else {})}
    if as_json:
        options = {section: [info.to_json() for info in infos] for section, infos in sections.items()}
        print_json({"name": known.name, "title": known.title, **options, "presets": preset_names()})
        return
    rows = [_row(section, info) for section, infos in sections.items() for info in infos]
    title = f"{known.name}: {known.title}"
    if not rows:
        print_table(["method", "parameters"], [[known.name, "none"]], title=title)
        return
    print_table(["set with --set", "default", "allowed", "meaning", "source of the default"], rows, title=title)
    presets = {preset: own_options(preset, name) for preset in preset_names()}
    chosen = [[preset, _settings(own)] for preset, own in presets.items() if own]
    if chosen:
        print_table(["--preset", "sets, beside training and backbone"], chosen, title=f"presets with values for {name}")


def _row(section: str, info: OptionInfo) -> list[str]:
    return [f"{section}.{info.name}", value_text(info.default), info.allowed or info.type, info.help, info.source]


def _settings(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value_text(value)}" for key, value in options.items())
