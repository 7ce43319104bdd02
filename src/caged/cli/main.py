"""The command group, and what happens when a command fails."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import NoReturn, cast

import typer

from caged._version import __version__
from caged.cli import data as data_commands
from caged.cli import methods, plot, results
from caged.cli.audit import audit
from caged.cli.compare import compare_command
from caged.cli.demo import demo
from caged.cli.evaluate import evaluate
from caged.cli.explain import explain_command
from caged.cli.output import INTERRUPTED, is_verbose, say
from caged.cli.recommend import recommend
from caged.cli.train import train
from caged.errors import CagedError, memory_error

BAD_INPUT = 2
# Unknown options, missing arguments and the like: the base of BadParameter, which older versions of typer take from
# click and newer ones bring along.
USAGE_ERROR = cast("type[typer.BadParameter]", typer.BadParameter.__base__)

app = typer.Typer(
    help="Top-K recommendation that is not captured by popularity: train, measure, recommend.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"caged {__version__}")
        raise typer.Exit


@app.callback()
def caged(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    """Top-K recommendation that is not captured by popularity: train, measure, recommend."""


app.command()(train)
app.command()(evaluate)
app.command()(recommend)
app.command("explain")(explain_command)
app.command()(audit)
app.command("compare")(compare_command)
app.command()(demo)
app.add_typer(data_commands.app, name="data")
app.add_typer(methods.app, name="methods")
app.add_typer(plot.app, name="plot")
app.add_typer(results.app, name="results")


def _explain(error: typer.BadParameter) -> None:
    message = " ".join(error.format_message().split()).replace(". ", "; ")
    if message:  # it is empty where the help was asked for and shown
        command = error.ctx.command_path if error.ctx else "caged"
        say(f"error: {message[0].lower()}{message[1:].rstrip('.')}; see {command} --help")


def _refuse(error: CagedError) -> NoReturn:
    if is_verbose():
        traceback.print_exc()
    say(f"error: {error}")
    sys.exit(BAD_INPUT)


def main() -> None:
    run(app, "caged")


def run(commands: typer.Typer, name: str) -> NoReturn:
    """Run a command line and leave with its exit code; whatever a user can cause is one sentence on stderr."""
    logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
    try:
        code = commands(prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except CagedError as error:
        _refuse(error)
    except USAGE_ERROR as error:
        _explain(error)
        sys.exit(BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (MemoryError, RuntimeError) as error:
        told = memory_error(error)
        if told is None:
            raise
        _refuse(told)
    except BrokenPipeError:  # the reader of a pipe went away, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the exit would fail to flush, loudly
        sys.exit(1)
    if code == INTERRUPTED:  # some versions of typer turn Ctrl-C into this code themselves
        say("interrupted")
    sys.exit(code)
