"""The table of methods: one line each. The command line, public classes, presets, tests and tables find a method here.

A line names the file and the class; neither is imported before `method` or `config` is asked for, so that names and
titles cost nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from caged.errors import ConfigError, unknown

if TYPE_CHECKING:
    from caged.models.contract import Method


@dataclass(frozen=True)
class Registered:
    """A method, its configuration and a line about it."""

    name: str
    title: str
    classes: Callable[[], tuple[type[Method[Any]], type[Any]]]
    public: str | None = None  # its class in `caged`; a method registered at run time is a plain `Recommender`

    @property
    def method(self) -> type[Method[Any]]:
        return self.classes()[0]

    @property
    def config(self) -> type[Any]:
        return self.classes()[1]


METHODS: dict[str, Registered] = {}


def register(name: str, method: type[Method[Any]], config: type[Any], title: str) -> None:
    """Make a method known under `name`. Names are unique; registering one twice is an error."""
    _add(Registered(name, title, lambda: (method, config)))


def registered(name: str) -> Registered:
    if name not in METHODS:
        raise ConfigError(unknown("method", name, METHODS))
    return METHODS[name]


def _add(known: Registered) -> None:
    if known.name in METHODS:
        taken = METHODS[known.name].method.__name__
        raise ConfigError(f"method '{known.name}' is registered already, by {taken}; choose another")
    METHODS[known.name] = known


def _method(name: str, home: str, title: str) -> None:
    """`home` is FILE:CLASS in this package. Beside CLASS stands CLASSConfig, and the public class is `caged.CLASS`."""
    file, _, of_method = home.partition(":")

    def classes() -> tuple[type[Method[Any]], type[Any]]:
        module = importlib.import_module(f"caged.models.{file}")
        return getattr(module, of_method), getattr(module, f"{of_method}Config")

    _add(Registered(name, title, classes, public=of_method))


_method("lightgcn", "lightgcn:LightGCN", "linear propagation on the user-item graph, BPR (SIGIR 2020)")
_method("softmax", "softmax:Softmax", "LightGCN with a sampled softmax, one knob from accurate to unbiased")
_method("caged", "caged:CAGED", "LightGCN whose edge weights follow an estimated likelihood (CIKM 2025)")
_method("mostpop", "mostpop:MostPopular", "the most popular items, the same for everybody")
_method("adjnorm", "adjnorm:AdjNorm", "LightGCN with an adjustable degree exponent (SIGIR 2022)")
_method("reg", "reg:Reg", "LightGCN, correlation of score and popularity penalised (WSDM 2021)")
_method("ips", "ips:IPS", "LightGCN, positives weighted by inverse popularity")
_method("macr", "macr:MACR", "LightGCN with popularity and conformity heads, taken away when ranking (KDD 2021)")
_method("lightgcn_bce", "lightgcn_bce:LightGCNBCE", "LightGCN with binary cross-entropy, MACR's diagnostic row")
_method("galore", "galore:GALORE", "LightGCN fine-tuned on graphs augmented for the long tail (CIKM 2023)")
_method("advdrop", "advdrop:AdvDrop", "LightGCN and a twin on adversarially drawn views of the graph (WWW 2024)")
_method("apda", "apda:APDA", "LightGCN whose messages weigh more the farther apart two nodes are (SIGIR 2023)")
_method("itemknn", "itemknn:ItemKNN", "nearest neighbours of what the user has, closed form (WWW 2001)")
_method("ease", "ease:EASE", "linear item-item model, closed form (WWW 2019)")
