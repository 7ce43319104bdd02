"""The command group, and what happens when a command fails."""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from contextlib import suppress
from itertools import pairwise
from typing import NoReturn, cast

import typer

from caged._version import __version__
from caged.cli.lazy import Command, lazy_group
from caged.cli.output import INTERRUPTED, SafeFormatter, is_verbose, say
from caged.errors import CagedError, RunError, memory_error

BAD_INPUT = 2
NO_READER = 128 + 13  # what a shell says of a process that SIGPIPE ended
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
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


def _refused(error: CagedError) -> int:
    if is_verbose():
        say(traceback.format_exc())
    say(f"error: {error}")
    return BAD_INPUT


def main() -> None:
    run(app, "caged")


def run(commands: typer.Typer, name: str) -> NoReturn:
    """Run a command line and leave with its exit code; whatever a user can cause is one sentence on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    code = 0
    try:
        code = _code_of(commands, name)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe went away, e.g. `| head`
        code = code or NO_READER
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = NO_READER  # typer and rich make 1 of it
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        code = BAD_INPUT  # also where a gate failed: nobody can read the reason
        with suppress(OSError):
            _refused(RunError(f"could not write the output: {error.strerror}; free space or send it elsewhere"))
    _drop_unwritten()
    sys.exit(code)


def _code_of(commands: typer.Typer, name: str) -> int:
    try:
        code: int = commands(prog_name=name, standalone_mode=False) or 0
    except CagedError as error:
        code = _refused(error)
    except USAGE_ERROR as error:
        _explain(error)
        code = BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (MemoryError, RuntimeError) as error:
        told = memory_error(error)
        if told is None:
            raise
        code = _refused(told)
    if code == INTERRUPTED:  # some versions of typer turn Ctrl-C into this code themselves
        say("interrupted")
    return code


def _drop_unwritten() -> None:
    """What cannot be written any more; else Python tries it once more at the exit, and fails loudly."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
