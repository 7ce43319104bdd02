"""`caged data simulate`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from caged.cli.data.contrast import print_contrast
from caged.cli.output import AsJson, Verbose, print_json, print_table, say
from caged.cli.progress import progress_line
from caged.config import build
from caged.data.market import WORLDS, MarketConfig
from caged.data.market import simulate as simulate_market
from caged.errors import ConfigError, unknown
from caged.files import refuse_filled_folder
from caged.page.numbers import number


def simulate(
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the market.")],
    seed: Annotated[int | None, typer.Option(help="Seed of the market [default: 1].")] = None,
    world: Annotated[
        str,
        typer.Option(help="demo (small) or kuairand (popularity as skewed as in the KuaiRand log)."),
    ] = "demo",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="One parameter, e.g. user_count=500; repeatable.")
    ] = None,
    valid_negative: Annotated[
        bool,
        typer.Option(
            "--valid-negative", help="Also write what chance showed before the test and nobody clicked, to tune by."
        ),
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Simulate a shop with a feedback loop, where everyone's true wishes are known.

    The folder can be trained on: train.parquet is the log of the shop, test.parquet its later clicks,
    test_negative.parquet what it then showed at random and nobody clicked. Beside them: test_oracle.parquet (drawn by
    true preference alone), items, users and rounds, simulation.json. The column source marks what was shown at random
    (explore).

    Examples:

      caged data simulate -o market

      caged data simulate -o feed --world kuairand

      caged data simulate -o small --seed 2 --set user_count=500 --set item_count=300

      caged train --data market --method lightgcn --validate-on source=explore
    """
    if world not in WORLDS:
        raise ConfigError(unknown("world", world, WORLDS))
    config = build(MarketConfig, {**WORLDS[world], **_parameters(set_ or [], seed)}, "market")
    refuse_filled_folder(out)
    try:
        with progress_line(quiet=as_json) as line:
            market = simulate_market(config, valid_negative=valid_negative, progress=line)
        market.write(out)
    except MemoryError as error:
        raise ConfigError(
            f"a market of {config.user_count:,} users and {config.item_count:,} items does not fit into memory; reduce "
            f"user_count, item_count or candidate_items"
        ) from error
    summary = market.summary()
    if as_json:
        print_json({"folder": out, **summary})
        return
    _print_summary(summary, world)
    say(f"folder: {out}")


def _parameters(assignments: list[str], seed: int | None) -> dict[str, str | int]:
    """`name=value` texts and the seed as parameters of the market."""
    known = [field.name for field in fields(MarketConfig)]
    values: dict[str, str | int] = {}
    for text in assignments:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals):
            raise ConfigError(f"cannot read --set '{text}'; write it as name=value, e.g. user_count=500")
        if name not in known:
            raise ConfigError(unknown("parameter of the market", name, known))
        values[name] = value
    if seed is not None:
        if "seed" in values:
            raise ConfigError(f"the seed is given twice, as --seed {seed} and --set seed={values['seed']}; drop one")
        values["seed"] = seed
    return values


def _print_summary(summary: dict[str, Any], world: str) -> None:
    counts = summary["counts"]
    sizes = ("users", "items", "train", "test_natural", "test_negative", "test_oracle")
    print_table(
        ["", "count"],
        [
            *([name.replace("_", " "), f"{counts[name]:,}"] for name in sizes),
            *([f"train from {source}", f"{clicks:,}"] for source, clicks in counts["train_by_source"].items()),
        ],
        title=f"market, {'' if world == 'demo' else f'world {world}, '}seed {summary['seed']}",
    )
    gini, top = summary["gini"], summary["top_fifth_share"]
    print_table(
        ["over items", "Gini", "top fifth holds"],
        [[name.replace("_", " "), number(gini[name]), number(top[name])] for name in gini],
    )
    print_contrast(summary["popularity_contrast"])
