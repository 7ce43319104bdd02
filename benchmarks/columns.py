"""Training by columns on 1, 2 and 4 processes: do they end alike, what do they send, how long does a step take?

python -m benchmarks.columns --data ml-100k --out benchmarks/results/columns_cpu2.json

Every method is trained from scratch for each number of ranks, with its defaults and the same seed. Differences are to
one rank: of the tables after the last epoch, and of recall and NDCG on the test part. Bytes are those that a rank sends
in a step, counted, beside the model (`caged.runs.planning.sent`). What a rank holds are the bytes of its tables, of
Adam's moments and of the best state. Ranks of one machine share its cores, so seconds say what messages cost, not what
more machines would save.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # it is not in __all__
from torch.multiprocessing.spawn import spawn

from benchmarks.circumstances import circumstances
from caged.columns import WHOLE, Columns
from caged.evaluation.evaluate import make_validator
from caged.files import write_json
from caged.graph import BipartiteGraph, Sampler
from caged.models import registered
from caged.models.contract import Method
from caged.page.text_table import plain_lines
from caged.runs.environment import resolve_device, share_threads
from caged.runs.loading import load_data
from caged.runs.planning.sent import sent_in_a_step
from caged.runs.spec import ExperimentSpec, resolve
from caged.runs.train import chosen_parts
from caged.seeding import Generators
from caged.training import Loop
from caged.training.checkpoint import moments_in, optimizer_state
from caged.training.columns import RankColumns, connected

METHODS = ("lightgcn", "softmax", "caged", "adjnorm", "ips")
OPTIONS = {"adjnorm": ("method.r=0.25",)}  # at its default it is LightGCN
METRICS = ("recall@20", "ndcg@20")
Found = dict[str, Any]


class _Epochs:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def epoch(self, line: dict[str, Any]) -> None:
        self.lines.append(line)


def specification(data: str, method: str, epochs: int, device: str, options: tuple[str, ...] = ()) -> ExperimentSpec:
    chosen = (f"train.epochs={epochs}", "train.patience=none", *OPTIONS.get(method, ()), *options)
    return resolve(data, method, overrides=chosen, device=device)


def trained(spec: ExperimentSpec, columns: Columns) -> tuple[Found, dict[str, torch.Tensor]]:
    """One training: what it took, and its whole tables on the first rank."""
    device = resolve_device(spec.device)
    data = load_data(spec)
    parts, _ = chosen_parts(spec, data.split)
    assert parts.valid is not None
    assert data.split.test is not None
    graph = BipartiteGraph.from_interactions(parts.train, device, spec.train.engine)
    validate = make_validator(parts.train, parts.valid, device=device, metrics=METRICS, columns=columns)
    test = make_validator(parts.train, data.split.test, device=device, metrics=METRICS, columns=columns)
    method = registered(spec.method).method(spec.config)
    method.columns = columns
    watched = _Epochs()
    loop = Loop(method, graph, spec.train, Generators(spec.seed, device), validate, observers=(watched,))
    loop.run()
    batch_size, _ = spec.train.batches(graph.edge_count)
    steps = -(-graph.edge_count // batch_size)
    found = {
        "metrics": test(method.scorer()),
        "seconds_per_step": median(line["seconds"]["train"] for line in watched.lines) / steps,
        "held": _held(loop),
        "sent": _sent(method, graph, batch_size, columns),
        "sent_by_the_model": sent_in_a_step(spec.method, batch_size, spec.config.embedding_size, columns.size),
    }
    return found, columns.joined(method.state().tensors, method.by_columns or ())


def _held(loop: Loop) -> int:
    """Bytes of the tables of this rank, of their moments and of the best state."""
    assert loop.optimizer is not None
    assert loop.best is not None
    tables = loop.method.by_columns or ()
    states = [loop.method.state().tensors[name] for name in tables] + [loop.best.tensors[name] for name in tables]
    moments = optimizer_state(loop.optimizer)
    return sum(part.nbytes for part in states) + sum(moments[name].nbytes for name in moments_in(moments))


def _sent(method: Method[Any], graph: BipartiteGraph, batch_size: int, columns: Columns) -> float:
    """Bytes that this rank sends in one step, counted."""
    if not isinstance(columns, RankColumns):
        return 0.0
    batch = next(iter(Sampler(graph, batch_size).epoch(Generators(2, graph.device)["sampling"])))
    before = columns.traffic.sent
    method.loss(batch).total.backward()
    return columns.traffic.sent - before


def _rank(rank: int, size: int, port: int, spec: ExperimentSpec, out: str) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0")
    share_threads(size)
    with connected(spec.config.embedding_size, resolve_device(spec.device), size) as columns:
        found, tables = trained(spec, columns)
        held = columns.collected(found["held"])
        if held is not None:
            torch.save(({**found, "held": max(held), **columns.described()}, tables), out)


def on_ranks(size: int, spec: ExperimentSpec) -> tuple[Found, dict[str, torch.Tensor]]:
    """The same on so many ranks, each a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/found.pt"
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        arguments = (size, store.port, spec, out)
        spawn(_alone if size == 1 else _rank, arguments, nprocs=size)
        return torch.load(out, weights_only=False)  # type: ignore[no-any-return]  # written above


def _alone(_rank_number: int, _size: int, _port: int, spec: ExperimentSpec, out: str) -> None:
    found, tables = trained(spec, WHOLE)
    torch.save((found, {name: table.cpu() for name, table in tables.items()}), out)


def measured(specs: Iterable[ExperimentSpec], ranks: Iterable[int]) -> list[Found]:
    rows: list[Found] = []
    for spec in specs:
        alone, tables = on_ranks(1, spec)
        for size in ranks:
            found, others = (alone, tables) if size == 1 else on_ranks(size, spec)
            learned = [key for key in tables if not key.startswith("estimator")]
            apart = max(float((tables[key] - others[key]).abs().max()) for key in learned)
            metrics = max(abs(alone["metrics"][key] - found["metrics"][key]) for key in METRICS)
            rows.append(
                {"method": spec.method, "ranks": size, **found, "tables_differ": apart, "metrics_differ": metrics}
            )
            print(rows[-1], flush=True)
    return rows


def text(rows: list[Found]) -> list[str]:
    headers = ["method", "ranks", "ms per step", "bytes sent", "model", "held by a rank", "tables", "metrics"]
    cells = [
        [
            row["method"],
            str(row["ranks"]),
            f"{1e3 * row['seconds_per_step']:.1f}",
            f"{row['sent']:,.0f}",
            f"{row['sent_by_the_model']:,.0f}",
            f"{row['held']:,}",
            f"{row['tables_differ']:.1e}",
            f"{row['metrics_differ']:.1e}",
        ]
        for row in rows
    ]
    return plain_lines(headers, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", action="append", default=[], help="such as method.embedding_size=256; repeatable")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    ranks = [int(part) for part in given.ranks.split(",")]
    options = tuple(given.set)
    specs = [specification(given.data, name, given.epochs, given.device, options) for name in given.methods.split(",")]
    rows = measured(specs, ranks)
    print("\n".join(text(rows)))
    if given.out is not None:
        about = {"data": given.data, "epochs": given.epochs, "options": given.set}
        where = circumstances("benchmarks.columns", resolve_device(given.device))
        write_json(given.out, {**about, "rows": rows, **where})


if __name__ == "__main__":
    main()
