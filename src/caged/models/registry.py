"""The table of methods: one line each. The command line, presets, tests and tables find a method through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from caged.errors import ConfigError, unknown
from caged.models.base import Method
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.models.mostpop import MostPopular, MostPopularConfig


@dataclass(frozen=True)
class Entry:
    """A method, its configuration and a line about it."""

    name: str
    method: type[Method[Any]]
    config: type[Any]
    title: str


METHODS: dict[str, Entry] = {}


def register(name: str, method: type[Method[Any]], config: type[Any], title: str) -> None:
    """Make a method known under `name`. Names are unique; registering one twice is an error."""
    if name in METHODS:
        raise ConfigError(f"method '{name}' is registered already, by {METHODS[name].method.__name__}; choose another")
    METHODS[name] = Entry(name, method, config, title)


def entry(name: str) -> Entry:
    if name not in METHODS:
        raise ConfigError(unknown("method", name, METHODS))
    return METHODS[name]


register("lightgcn", LightGCN, LightGCNConfig, "linear propagation on the user-item graph, BPR (SIGIR 2020)")
register("mostpop", MostPopular, MostPopularConfig, "the most popular items, the same for everybody")
