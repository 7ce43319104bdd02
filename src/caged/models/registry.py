"""The table of methods: one line each. The command line, presets, tests and tables find a method through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from caged.errors import ConfigError, unknown
from caged.models.adjnorm import AdjNorm, AdjNormConfig
from caged.models.advdrop.method import AdvDrop, AdvDropConfig
from caged.models.apda.method import APDA, APDAConfig
from caged.models.caged.method import CAGED, CAGEDConfig
from caged.models.contract import Method
from caged.models.ease import EASE, EASEConfig
from caged.models.galore.method import GALORE, GALOREConfig
from caged.models.ips import IPS, IPSConfig
from caged.models.itemknn import ItemKNN, ItemKNNConfig
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.models.lightgcn_bce import LightGCNBCE, LightGCNBCEConfig
from caged.models.macr import MACR, MACRConfig
from caged.models.mostpop import MostPopular, MostPopularConfig
from caged.models.reg import Reg, RegConfig


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
register("caged", CAGED, CAGEDConfig, "LightGCN whose edge weights follow an estimated likelihood (CIKM 2025)")
register("mostpop", MostPopular, MostPopularConfig, "the most popular items, the same for everybody")
register("adjnorm", AdjNorm, AdjNormConfig, "LightGCN with an adjustable degree exponent (SIGIR 2022)")
register("reg", Reg, RegConfig, "LightGCN, correlation of score and popularity penalised (WSDM 2021)")
register("ips", IPS, IPSConfig, "LightGCN, positives weighted by inverse popularity")
register("macr", MACR, MACRConfig, "LightGCN with popularity and conformity heads, taken away when ranking (KDD 2021)")
register("lightgcn_bce", LightGCNBCE, LightGCNBCEConfig, "LightGCN with binary cross-entropy, MACR's diagnostic row")
register("galore", GALORE, GALOREConfig, "LightGCN fine-tuned on graphs augmented for the long tail (CIKM 2023)")
register("advdrop", AdvDrop, AdvDropConfig, "LightGCN and a twin on adversarially drawn views of the graph (WWW 2024)")
register("apda", APDA, APDAConfig, "LightGCN whose messages weigh more the farther apart two nodes are (SIGIR 2023)")
register("itemknn", ItemKNN, ItemKNNConfig, "nearest neighbours of what the user has, closed form (WWW 2001)")
register("ease", EASE, EASEConfig, "linear item-item model, closed form (WWW 2019)")
