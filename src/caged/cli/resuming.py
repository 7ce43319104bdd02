"""Commands that go on with what was interrupted: they take its configuration and nothing new."""

from __future__ import annotations

from collections.abc import Collection

import typer

from caged.errors import ConfigError


def check_only_resume(ctx: typer.Context, allowed: Collection[str], *, what: str = "run") -> None:
    """Refuse options beside --resume, except for those that say how to report, not what to do."""
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in allowed:
            flag = "--" + name.strip("_").replace("_", "-")
            raise ConfigError(f"--resume uses the options the {what} was started with; leave {flag} out")
