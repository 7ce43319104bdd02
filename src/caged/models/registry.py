"""The table of methods: one line each. The command line, public classes, presets, tests and tables find a method here.

A line names the file and the class; neither is imported before `method` or `config` is asked for, so that names and
titles cost nothing. `look` is the colour, marker and pattern of a method in every chart; no two have the same.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
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
    display: str = ""  # its name in tables and on pages; `name` where left out
    plain: str = ""  # what it does, in one sentence for people who do not build recommenders
    look: int = -1  # given out by `_add` where left out

    @property
    def method(self) -> type[Method[Any]]:
        return self.classes()[0]

    @property
    def config(self) -> type[Any]:
        return self.classes()[1]


METHODS: dict[str, Registered] = {}


def register(name: str, method: type[Method[Any]], config: type[Any], title: str, *, display: str = "") -> None:
    """Make a method known under `name`. Names are unique; registering one twice is an error."""
    _add(Registered(name, title, lambda: (method, config), display=display))


def registered(name: str) -> Registered:
    if name not in METHODS:
        raise ConfigError(unknown("method", name, METHODS))
    return METHODS[name]


ADJUSTED = " adjusted"  # behind the name of a method whose popularity was taken out after training


def display_name(method: str) -> str:
    """How a method is called in tables and on pages; the name itself where nobody registered it.

    >>> display_name("lightgcn"), display_name("mostpop"), display_name("ours"), display_name("lightgcn adjusted")
    ('LightGCN', 'Most popular', 'ours', 'LightGCN adjusted')
    """
    if method.endswith(ADJUSTED):
        return display_name(method.removesuffix(ADJUSTED)) + ADJUSTED
    known = METHODS.get(method)
    return known.display if known is not None and known.display else method


def _add(known: Registered) -> None:
    if known.name in METHODS:
        taken = METHODS[known.name].method.__name__
        raise ConfigError(f"method '{known.name}' is registered already, by {taken}; choose another")
    free = 1 + max((other.look for other in METHODS.values()), default=-1)
    METHODS[known.name] = known if known.look >= 0 else replace(known, look=free)


def _method(name: str, home: str, title: str, *, look: int, plain: str, display: str | None = None) -> None:
    """`home` is FILE:CLASS in this package. Beside CLASS stands CLASSConfig, and the public class is `caged.CLASS`."""
    file, _, of_method = home.partition(":")

    def classes() -> tuple[type[Method[Any]], type[Any]]:
        module = importlib.import_module(f"caged.models.{file}")
        return getattr(module, of_method), getattr(module, f"{of_method}Config")

    _add(Registered(name, title, classes, public=of_method, display=display or of_method, plain=plain, look=look))


_method(
    "lightgcn",
    "lightgcn:LightGCN",
    "linear propagation on the user-item graph, BPR (SIGIR 2020)",
    look=0,
    plain="Learns from who chose what, and corrects nothing for popularity.",
)
_method(
    "softmax",
    "softmax:Softmax",
    "LightGCN with a sampled softmax, one knob from accurate to unbiased",
    look=13,
    plain="LightGCN with another loss and one knob that trades accuracy for less popularity.",
)
_method(
    "caged",
    "caged:CAGED",
    "LightGCN whose edge weights follow an estimated likelihood (CIKM 2025)",
    look=1,
    plain="LightGCN that learns while it trains how much each interaction should count.",
)
_method(
    "mostpop",
    "mostpop:MostPopular",
    "the most popular items, the same for everybody",
    look=2,
    display="Most popular",
    plain="Shows everyone the same bestsellers, except those they already have.",
)
_method(
    "adjnorm",
    "adjnorm:AdjNorm",
    "LightGCN with an adjustable degree exponent (SIGIR 2022)",
    look=3,
    plain="LightGCN with a dial for how much popular items are damped.",
)
_method(
    "reg",
    "reg:Reg",
    "LightGCN, correlation of score and popularity penalised (WSDM 2021)",
    look=4,
    plain="LightGCN that is penalised when its scores rise with popularity.",
)
_method(
    "ips",
    "ips:IPS",
    "LightGCN, positives weighted by inverse popularity",
    look=5,
    plain="LightGCN in which choosing a popular item counts less than choosing a rare one.",
)
_method(
    "macr",
    "macr:MACR",
    "LightGCN with popularity and conformity heads, taken away when ranking (KDD 2021)",
    look=6,
    plain="LightGCN that learns which part of a score comes from popularity, and takes it off.",
)
_method(
    "lightgcn_bce",
    "lightgcn_bce:LightGCNBCE",
    "LightGCN with binary cross-entropy, MACR's diagnostic row",
    look=7,
    display="LightGCN-BCE",
    plain="LightGCN trained with another loss, the one MACR starts from.",
)
_method(
    "galore",
    "galore:GALORE",
    "LightGCN fine-tuned on graphs augmented for the long tail (CIKM 2023)",
    look=8,
    plain="LightGCN that trains on with extra links to rarely chosen items.",
)
_method(
    "advdrop",
    "advdrop:AdvDrop",
    "LightGCN and a twin on adversarially drawn views of the graph (WWW 2024)",
    look=9,
    plain="LightGCN that has to give the same answer after the most biased links are dropped.",
)
_method(
    "apda",
    "apda:APDA",
    "LightGCN whose messages weigh more the farther apart two nodes are (SIGIR 2023)",
    look=10,
    plain="LightGCN in which unlike neighbours count for more.",
)
_method(
    "ips_aggregation",
    "ips_aggregation:IPSAggregation",
    "LightGCN, messages weighted by inverse popularity at a fixed or learned exponent, a control",
    look=14,
    display="IPS aggregation",
    plain="LightGCN in which popular items say less about the people who chose them.",
)
_method(
    "itemknn",
    "itemknn:ItemKNN",
    "nearest neighbours of what the user has, closed form (WWW 2001)",
    look=11,
    plain="Recommends what is often chosen together with the items a user already has.",
)
_method(
    "ease",
    "ease:EASE",
    "linear item-item model, closed form (WWW 2019)",
    look=12,
    plain="Scores an item by all items a user has, with weights computed in one step.",
)
