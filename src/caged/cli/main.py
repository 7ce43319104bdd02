"""The command group, and what happens when a command fails."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from itertools import pairwise
from typing import NoReturn, cast

import typer

from caged._version import __version__
from caged.cli.lazy import Command, lazy_group
from caged.cli.output import INTERRUPTED, SafeFormatter, is_verbose, say
from caged.errors import CagedError, memory_error

BAD_INPUT = 2
# Unknown options, missing arguments and the like: the base of BadParameter, which older versions of typer take from
# click and newer ones bring along.
USAGE_ERROR = cast("type[typer.BadParameter]", typer.BadParameter.__base__)

ABOUT = "Train and measure recommenders that are not captured by popularity."
COMMANDS = {
    "best": Command("caged.cli.best:best", "Find the best model for a log, and write it ready to recommend."),
    "train": Command("caged.cli.train:train", "Train a method on a log and evaluate it."),
    "plan": Command(
        "caged.cli.plan:plan", "Predict the memory and the time of a training, and what to change if it does not fit."
    ),
    "tune": Command("caged.cli.tune:app", "Tune methods with equal budgets, and choose one."),
    "study": Command(
        "caged.cli.study:app",
        "Run a plan of many runs within a budget, see how far it is, and show its tables and figures.",
    ),
    "evaluate": Command(
        "caged.cli.evaluate:evaluate",
        "Evaluate a finished run again, at other list lengths or on another part.",
    ),
    "recommend": Command(
        "caged.cli.recommend:recommend",
        "Recommend items that users have not seen yet, with the ids of your log.",
    ),
    "export": Command(
        "caged.cli.export:app", "Export what a model learned: an artefact to serve, or the vectors of users and items."
    ),
    "serve": Command(
        "caged.cli.serve:serve",
        "Answer over HTTP: lists for known and new people, similar items, reasons, with a knob against bestsellers.",
    ),
    "explore": Command(
        "caged.cli.explore:explore",
        "Open a page on this machine: search people, see their lists, turn popularity down, ask why.",
    ),
    "explain": Command(
        "caged.cli.explain:explain_command",
        "Show which items in a user's history the model relies on, and how popular they are.",
    ),
    "audit": Command(
        "caged.cli.audit:audit",
        "Audit any recommender for popularity bias, from its lists and the log it learned from.",
    ),
    "adjust": Command(
        "caged.cli.adjust:adjust",
        "Take popularity out of a recommender after training, and see the price.",
    ),
    "compare": Command(
        "caged.cli.compare:compare_command",
        "Compare runs and audits on the same test part, with differences, intervals and tests.",
    ),
    "demo": Command(
        "caged.cli.demo:demo",
        "Simulate a shop with a feedback loop, and judge what methods learn from it against the truth.",
    ),
    "data": Command("caged.cli.data:app", "Get, import, split, simulate and describe data."),
    "methods": Command("caged.cli.methods:app", "List the methods and their parameters."),
    "plot": Command("caged.cli.plot:app", "Draw figures of a run."),
    "results": Command(
        "caged.cli.results:app", "Print recorded results as a paper's table, or move them to another machine."
    ),
}
app = lazy_group(COMMANDS, help=ABOUT, completion=True)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"caged {__version__}")
        raise typer.Exit


@app.callback(help=ABOUT)
def caged(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    pass


def _explain(error: typer.BadParameter) -> None:
    message = error.format_message()
    if error.ctx is not None and message == error.ctx.get_help():  # of a group, where no command is named
        say(message)
        return
    message = " ".join(message.split()).replace(". ", "; ").rstrip(".") + _as_given(error, message)
    command = error.ctx.command_path if error.ctx else "caged"
    say(f"error: {message[0].lower()}{message[1:]}; see {command} --help")


def _as_given(error: typer.BadParameter, message: str) -> str:
    """What was typed for the option that is refused: beside pydantic, typer does not say it."""
    names = getattr(getattr(error, "param", None), "opts", [])
    given = ""
    for word, after in pairwise([*sys.argv, ""]):
        name, equals, value = word.partition("=")
        if name in names:
            given = ascii(value if equals else after)
    return f" (given: {given})" if given and given not in message else ""


def _refuse(error: CagedError) -> NoReturn:
    if is_verbose():
        say(traceback.format_exc())
    say(f"error: {error}")
    sys.exit(BAD_INPUT)


def main() -> None:
    run(app, "caged")


def run(commands: typer.Typer, name: str) -> NoReturn:
    """Run a command line and leave with its exit code; whatever a user can cause is one sentence on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
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
