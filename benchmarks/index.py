"""Which index for large catalogues? Recall of the exact top 20 against lists a second, on made-up vectors.

python -m benchmarks.index                            a million items, K = 64; long: graphs take minutes to build
python -m benchmarks.index --only 'head*' --alike 0   one of them, on vectors without any structure
python -m benchmarks.index --filters                  the index of `caged serve` with filters that keep more than 5%

Recall is measured at four notches of the knob. Vectors are asked for in batches of 16, which is what a server with 16
clients sees; on two threads, each has its own batches. `cpu_ms` is the time of the processor for a list on one
thread, which a busy machine changes least. Candidates of every index are scored exactly.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before faiss is loaded: of the threads that ask
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.circumstances import circumstances
from benchmarks.made_up_artefact import ALIKE, write_made_up
from benchmarks.rival_indexes import RIVALS, Rival, Search
from benchmarks.table import index_table
from caged.data.ids import Array
from caged.files import write_json
from caged.products.serve import ServedModel
from caged.products.serve.filters import ItemFilters, Kept
from caged.products.serve.index import ItemIndex, item_table, library
from caged.products.serve.index_build import STRENGTHS, K, build, recall
from caged.products.serve.manifest import IndexAs, Notch
from caged.products.serve.ranking import Ranking, Wanted

OURS, EXACT = "head exact, IVF 4 bits", "exact"
PACKAGES = [name for name, module in (("faiss-cpu", "faiss"), ("usearch", "usearch")) if find_spec(module)]
BATCH = 16
BUILDERS = 2  # threads that build
PROBES = (8, 16, 32, 64, 128, 256, 1024)
USERS = 1000

Lists = Callable[[Sequence[Wanted]], list[Array]]
Case = tuple[str, int, Lists, float, int]  # name, setting, how to get lists, seconds to build, bytes


def wanted(model: ServedModel, users: Sequence[int], strength: float, kept: Kept | None = None) -> list[Wanted]:
    """Lists over the whole catalogue, what people have had included."""
    nothing = np.empty(0, dtype=np.int64)
    spread = model.arrays["user_spread"]
    return [
        Wanted(K, nothing, model.user_vector(user), strength, np.float32(spread[user]), kept, None, nothing)
        for user in users
    ]


def by_ranking(ranking: Ranking) -> Lists:
    return lambda some: [best.rows for best in ranking.best(some)]


def by_rival(search: Search, rival: Rival, setting: int, model: ServedModel, scale: float) -> Lists:
    """Candidates, and the best of them by exact scores."""
    ranking = Ranking(model)

    def lists(some: Sequence[Wanted]) -> list[Array]:
        penalties = np.array([one.penalty / scale for one in some])
        queries = np.c_[np.stack([one.vector for one in some if one.vector is not None]), -penalties]
        found = search(queries.astype(np.float32), rival.candidates, setting)
        best = [ranking._of_proposed(one, rows[rows >= 0]) for one, rows in zip(some, found, strict=True)]
        return [np.empty(0, dtype=np.int64) if one is None else one.rows for one in best]

    return lists


# ---------------------------------------------------------------- what is compared


def with_probes(index: ItemIndex, probes: int) -> ItemIndex:
    stated = IndexAs("", index.stated.lists, len(index.head), index.stated.scale, K, 0, (Notch(0.0, probes, 0.0),))
    return ItemIndex(stated, index.head, index.head_table, index.lists)


def ours(model: ServedModel) -> tuple[ItemIndex, float]:
    """And the seconds to build it."""
    faiss = library()
    assert faiss is not None
    faiss.omp_set_num_threads(BUILDERS)
    started = time.perf_counter()
    built = build(faiss, model)
    seconds = time.perf_counter() - started
    faiss.omp_set_num_threads(1)
    stated = IndexAs("", built.lists.nlist, len(built.head), built.scale, K, 0, ())
    return ItemIndex(stated, built.head, item_table(model, built.head, built.scale), built.lists), seconds


def named(name: str, only: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in only.split(";"))


def cases(model: ServedModel, only: str) -> Iterator[Case]:
    faiss = library()
    assert faiss is not None
    if named(EXACT, only):
        yield EXACT, 0, by_ranking(Ranking(model)), 0.0, 0
    if named(OURS, only):
        index, seconds = ours(model)
        size = len(faiss.serialize_index(index.lists)) + index.head_table.nbytes
        for probes in PROBES:
            if probes <= index.stated.lists:
                yield OURS, probes, by_ranking(Ranking(model, with_probes(index, probes))), seconds, size
    scale = float(np.median(model.arrays["user_spread"]))
    table = item_table(model, np.arange(len(model.items)), scale)
    for name, rival in RIVALS.items():
        if not named(name, only) or find_spec(rival.package) is None:
            continue
        faiss.omp_set_num_threads(BUILDERS)
        started = time.perf_counter()
        search, size = rival.build(table)
        seconds = time.perf_counter() - started
        faiss.omp_set_num_threads(1)
        for setting in rival.settings:
            yield name, setting, by_rival(search, rival, setting, model, scale), seconds, size


# ---------------------------------------------------------------- measuring


def batches(some: Sequence[Wanted]) -> list[Sequence[Wanted]]:
    return [some[first : first + BATCH] for first in range(0, len(some), BATCH)]


def asked(lists: Lists, some: Sequence[Wanted], threads: int) -> tuple[list[Array], float, float]:
    """The lists, and seconds of the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    if threads == 1:
        found = [lists(batch) for batch in batches(some)]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(lists, batches(some)))
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    return [rows for batch in found for rows in batch], *seconds


def measured(case: Case, by_notch: Sequence[tuple[Sequence[Wanted], Sequence[Array]]]) -> dict[str, Any]:
    name, setting, lists, build_s, size = case
    lists(by_notch[0][0][:BATCH])
    recalls, walls, cpus = [], 0.0, 0.0
    for some, truth in by_notch:
        found, wall, cpu = asked(lists, some, 1)
        recalls.append(round(recall(truth, found), 4))
        walls, cpus = walls + wall, cpus + cpu
    on_two = sum(asked(lists, some, 2)[1] for some, _ in by_notch)
    count = sum(len(some) for some, _ in by_notch)
    return {
        "index": name,
        "setting": setting,
        "recall": dict(zip(map(str, STRENGTHS), recalls, strict=True)),
        "cpu_ms": round(1e3 * cpus / count, 3),
        "lists_per_s": round(count / walls, 1),
        "lists_per_s_two_threads": round(count / on_two, 1),
        "build_s": round(build_s, 1),
        "mib": round(size / 2**20, 1),
    }


def compared(model: ServedModel, people: int, only: str) -> Iterator[dict[str, Any]]:
    exact = by_ranking(Ranking(model))
    by_notch = [(some, asked(exact, some, 1)[0]) for some in (wanted(model, range(people), one) for one in STRENGTHS)]
    for case in cases(model, only):
        yield measured(case, by_notch)


def filtered(model: ServedModel, people: int) -> Iterator[dict[str, Any]]:
    """The index of the server with filters on so many percent of the items; below 5% search is exact."""
    index, filters = ours(model)[0], ItemFilters(model.item_table)
    for percent in (1, 5, 10, 50):
        kept = filters.kept({"half": 1} if percent == 50 else {"category": list(range(percent))})
        for strength in STRENGTHS:
            some = wanted(model, range(people), strength, kept)
            truth = asked(by_ranking(Ranking(model)), some, 1)[0]
            for probes in (16, 64):
                lists = by_ranking(Ranking(model, with_probes(index, probes)))
                lists(some[:BATCH])
                found, _, cpu = asked(lists, some, 1)
                yield {
                    "kept_percent": percent,
                    "less_popular": strength,
                    "probes": probes,
                    "recall": round(recall(truth, found), 4),
                    "shortest": min(map(len, found)),
                    "cpu_ms": round(1e3 * cpu / len(some), 3),
                }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Compare indexes for large catalogues.")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--people", type=int, default=200, help="of whom each asks once at every notch")
    parser.add_argument("--alike", type=float, default=ALIKE, help="how much of a vector is its topic; 0: no structure")
    parser.add_argument("--only", default="*", help="patterns of names, divided by ;")
    parser.add_argument("--filters", action="store_true", help="measure filters instead")
    parser.add_argument("--json", type=Path, help="write a record, after each result")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "artefact"
        write_made_up(place, items=given.items, users=max(given.people, USERS), width=given.width, alike=given.alike)
        model = ServedModel.load(place, check=False)
        made = filtered(model, given.people) if given.filters else compared(model, given.people, given.only)
        results = []
        for result in made:
            results.append(result)
            print(result, flush=True)
            if given.json:
                write_json(given.json, {**circumstances("benchmarks.index", packages=PACKAGES), "results": results})
    if not given.filters:
        print(index_table(results))


if __name__ == "__main__":
    main()
