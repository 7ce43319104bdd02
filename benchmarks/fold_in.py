"""How good are lists for people who were not in training? `python -m benchmarks.fold_in --data ml-1m`

A fifth of the people is held out altogether. One model is trained without them and folds them in from 80% of what they
have had; another is trained with that 80%. Both are asked for the other 20%.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import caged
from benchmarks.circumstances import circumstances
from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.files import write_json
from caged.runs.environment import resolve_device

HELD_OUT, HISTORY = 0.2, 0.8
Options = dict[str, Any]


def cut(log: Interactions, seed: int) -> tuple[Array, Array]:
    """Two masks over the pairs: those of the people held out, and those of them that are asked for."""
    draw = np.random.default_rng(seed)
    people = draw.permutation(log.user_count)[: int(HELD_OUT * log.user_count)]
    of_new = np.isin(log.users, people)
    order = draw.permutation(len(log))
    place = np.empty(len(log), dtype=np.int64)  # of a pair among those of its user, in random order
    by_user = order[np.argsort(log.users[order], kind="stable")]
    place[by_user] = np.arange(len(log)) - np.repeat(log.user_offsets[:-1], np.diff(log.user_offsets))
    wanted = of_new & (place >= np.ceil(HISTORY * log.user_degrees[log.users]))
    return of_new, wanted


def frame(log: Interactions, chosen: Array) -> pa.Table:
    users, items = log.users[chosen], log.items[chosen]
    return pa.table({"user_id": log.user_ids.external(users), "item_id": log.item_ids.external(items)})


def recall(lists: pa.Table, wanted: dict[Any, set[Any]], k: int) -> float:
    found: dict[Any, set[Any]] = {}
    for user, item in zip(lists["user_id"].to_pylist(), lists["item_id"].to_pylist(), strict=True):
        found.setdefault(user, set()).add(item)
    return float(np.mean([len(found.get(user, set()) & items) / len(items) for user, items in wanted.items()]))


def grouped(table: pa.Table) -> dict[Any, list[Any]]:
    people: dict[Any, list[Any]] = {}
    for user, item in zip(table["user_id"].to_pylist(), table["item_id"].to_pylist(), strict=True):
        people.setdefault(user, []).append(item)
    return people


def measured(
    log: Interactions, method: str, options: Options, *, seed: int, device: str, k: int = 20
) -> dict[str, Any]:
    of_new, asked = cut(log, seed)
    histories, wanted = grouped(frame(log, of_new & ~asked)), grouped(frame(log, asked))
    relevant = {user: set(items) for user, items in wanted.items() if user in histories}
    without = caged.Recommender(method, seed=seed, device=device, **options).fit(frame(log, ~of_new))
    known = set(without.artefact.train.item_ids.values.to_pylist())
    histories = {user: items for user, items in histories.items() if user in relevant and known & set(items)}
    relevant = {user: items for user, items in relevant.items() if user in histories}
    folded = recall(without.recommend_for(histories, k), relevant, k)
    trained = caged.Recommender(method, seed=seed, device=device, **options).fit(frame(log, ~asked))
    inside = recall(trained.recommend(list(relevant), k), relevant, k)
    return {"people": len(relevant), "folded_in": folded, "trained_in": inside, "ratio": folded / inside}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--method", default="lightgcn")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="an option of the method or of training, NAME=JSON")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    options = {name: json.loads(value) for name, _, value in (text.partition("=") for text in given.set)}
    found = measured(caged.dataset(given.data), given.method, options, seed=given.seed, device=given.device)
    print(f"{given.method} on {given.data}, {found['people']:,} people held out")
    print(f"recall@20 folded in {found['folded_in']:.4f}, trained in {found['trained_in']:.4f}: {found['ratio']:.1%}")
    if given.out is not None:
        about = {"data": given.data, "method": given.method, "seed": given.seed, "options": options}
        write_json(given.out, {**about, **found, **circumstances("benchmarks.fold_in", resolve_device(given.device))})


if __name__ == "__main__":
    main()
