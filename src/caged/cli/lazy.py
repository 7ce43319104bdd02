"""Groups of commands whose files are imported when a command is called, so that asking for help stays fast."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.main import get_group

from caged.cli.help import HelpContext, HelpGroup, with_plain_help


class Command(NamedTuple):
    """Where a command is written, `module:name`, and its line in the help of the group."""

    place: str
    help: str


class LazyGroup(HelpGroup):
    """Lists its commands from a table; a command takes the place of its line once it is called."""

    table: ClassVar[Mapping[str, Command]]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, self.load(name) if name else listed, rest

    @classmethod
    @cache  # typer needs longer to build a command than many a command to run
    def load(cls, name: str) -> Any:
        """The command itself, with its options and, where it is a group, its commands."""
        module, _, attribute = cls.table[name].place.partition(":")
        found = getattr(import_module(module), attribute)
        around = typer.Typer(add_completion=False, rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=name)
        else:
            around.command(name)(found)
        return with_plain_help(get_group(around).commands[name])


def lazy_group(commands: Mapping[str, Command], *, help: str, completion: bool = False) -> typer.Typer:
    """A group that shows its help where no command is named; `completion` adds the options that set up the shell."""

    class Group(LazyGroup):
        table = commands
        context_class = HelpContext

    app = typer.Typer(
        cls=Group,
        help=help,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=completion,
        rich_markup_mode=None,
    )
    for name, command in commands.items():
        app.command(name, help=command.help)(_never_called)
    return app


def _never_called() -> None:
    """Stands in the help for a command that is not imported yet."""
