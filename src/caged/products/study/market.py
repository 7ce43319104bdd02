"""The simulated data of a plan: as the simulation writes it, and as text with whole numbers for ids, which is what the
released splits are and what protocol `paper` needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from caged.config import build
from caged.data import Interactions
from caged.data.market import Market, MarketConfig, simulate
from caged.errors import RunError
from caged.files import json_ready, new_folder, read_json

SUMMARY = "simulation.json"


def make_market(parameters: tuple[tuple[str, Any], ...], folder: Path, text: Path) -> None:
    """The market of these parameters in both forms; what stands there already is kept, another market refused."""
    config = build(MarketConfig, dict(parameters), "simulate")
    if folder.is_dir() and not _is_of(folder / SUMMARY, config):
        raise RunError(f"{folder} holds a market of other parameters than the plan has; move it away")
    if folder.is_dir() and text.is_dir():
        return
    market = simulate(config)
    if not folder.is_dir():
        market.write(folder)
    if not text.is_dir():
        _write_text(market, text)


def _is_of(summary: Path, config: MarketConfig) -> bool:
    found = read_json(summary)
    return isinstance(found, dict) and found.get("parameters") == json_ready(vars(config))


def _write_text(market: Market, folder: Path) -> None:
    with new_folder(folder) as temporary:
        for name, part in (("train", "train"), ("test", "test_natural")):
            lines = _lines(market.interactions(part))  # type: ignore[arg-type]
            (temporary / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _lines(part: Interactions) -> list[str]:
    """`user item item ...`, users without any left out."""
    order = np.lexsort((part.items, part.users))
    users, items = part.users[order], part.items[order]
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    ends = [*starts[1:], len(users)]
    return [" ".join(map(str, [users[start], *items[start:end]])) for start, end in zip(starts, ends, strict=True)]
