"""Work on several ranks, started once; and what the tests let them do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing
from torch.distributed import TCPStore

from caged.columns import WHOLE, Columns
from caged.data import split_log
from caged.errors import RankLostError
from caged.evaluation.evaluate import make_validator
from caged.graph import BipartiteGraph, Sampler
from caged.models import registered
from caged.seeding import Generators
from caged.training import Interrupted, Loop, TrainConfig, load_checkpoint
from caged.training.columns import RankColumns, connected
from tests.models.logs import skewed

WIDTH = 6
BATCH = 64
# Every method that can be trained by columns, and what of it makes a difference there.
TRIED: dict[str, tuple[str, dict[str, Any]]] = {
    "lightgcn": ("lightgcn", {}),
    "lightgcn of a softmax": ("lightgcn", {"loss": "softmax"}),
    "softmax": ("softmax", {"candidate_rows": 16}),
    "softmax against negatives": ("softmax", {"candidates": "uniform", "gamma": 0.0}),
    "lightgcn_bce": ("lightgcn_bce", {}),
    "adjnorm": ("adjnorm", {"r": 0.25}),
    "adjnorm with loops": ("adjnorm", {"self_loop": True, "l2_on": "propagated"}),
    "ips": ("ips", {"ips_scheme": "sn_batch"}),
    "reg": ("reg", {}),
    "caged": ("caged", {"eps": 0.1, "estimator_batch_size": 100}),
    "caged in two stages": (
        "caged",
        {"without": "two_stage", "ts_eval": "fixed", "estimator_pretrain_epochs": 2, "eps": 0.1},
    ),
}


class History:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def epoch(self, line: dict[str, Any]) -> None:
        self.lines.append(line)


def make(name: str, columns: Columns, width: int = WIDTH) -> Any:
    method, options = TRIED[name]
    known = registered(method)
    made = known.method(known.config(embedding_size=width, **options))
    made.columns = columns
    return made


def loop_of(name: str, columns: Columns = WHOLE, *, width: int = WIDTH, epochs: int = 3, **options: Any) -> Loop:
    parts = split_log(skewed(), "random", seed=1)
    log, valid = parts.train, parts.valid
    config = TrainConfig(epochs=epochs, batch_size=BATCH, learning_rate=0.01, patience=None, checkpoint_seconds=0)
    validate = make_validator(log, valid, k=5, metrics=("recall@5",), columns=columns)
    graph = BipartiteGraph.from_interactions(log)
    method = make(name, columns, width)
    return Loop(method, graph, config, Generators(1), validate, monitor="recall@5", **options)


def outcome(name: str, columns: Columns = WHOLE, **options: Any) -> dict[str, Any]:
    """Whole tables, what validation said, and the scores of all users after a few epochs."""
    history = History()
    loop = loop_of(name, columns, observers=(history,), **options)
    loop.run()
    method = loop.method
    return {
        "state": columns.joined(method.state().tensors, method.by_columns or ()),
        "validation": [line["validation"] for line in history.lines],
        "losses": [line["loss"]["total"] for line in history.lines],
        "scores": method.scorer()(torch.arange(40)),
    }


def interrupted(folder: Path, columns: Columns = WHOLE, name: str = "caged") -> None:
    """Leaves a checkpoint after the second of four epochs."""
    history = History()
    where = {"folder": folder} if columns.first else {}
    stop = {"stop_requested": lambda: len(history.lines) == 2} if columns.first else {}
    loop = loop_of(name, columns, epochs=4, observers=(history,), **where, **stop)
    try:
        loop.run()
    except Interrupted:
        return
    raise AssertionError("it was not interrupted")


def resumed(folder: Path, columns: Columns = WHOLE, name: str = "caged") -> dict[str, Any]:
    return outcome(name, columns, epochs=4, stored=load_checkpoint(folder))


def sent_in_a_step(name: str, columns: RankColumns) -> tuple[int, float]:
    """Messages and bytes of one training step."""
    method, generators = make(name, columns), Generators(1)
    graph = BipartiteGraph.from_interactions(skewed())
    method.prepare(graph, generators)
    batch = next(iter(Sampler(graph, BATCH).epoch(generators["sampling"])))
    before = columns.traffic.messages, columns.traffic.sent
    method.loss(batch).total.backward()
    return columns.traffic.messages - before[0], columns.traffic.sent - before[1]


# ---------------------------------------------------------------- on the ranks


def work(rank: int, size: int, ports: tuple[int, int], folder: Path) -> None:
    """All checks of one group of ranks; the first one writes down what came of them."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    _meet(rank, size, ports[0])
    with connected(WIDTH, torch.device("cpu"), size) as columns:
        found["described"] = columns.described()
        for name in TRIED:
            found[name] = outcome(name, columns)
        found["sent"] = {name: sent_in_a_step(name, columns) for name in ("lightgcn", "softmax")}
        found["resumed from one"] = resumed(folder / "one", columns)
        interrupted(folder / "several", columns)
        within = _threads_of_groups()
    found["threads"] = within, _threads_of_groups()
    _meet(rank, size, ports[1])
    found["lost"] = _without_an_answer(rank)
    if rank == 0:
        torch.save(found, folder / "found.pt")


def _threads_of_groups() -> list[str]:
    """By their names; none where the system does not tell."""
    names = [thread.read_text(encoding="ascii").strip() for thread in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if "gloo" in name]


def _without_an_answer(rank: int) -> str:
    """What a rank says whose message nobody answers."""
    try:
        with connected(WIDTH, torch.device("cpu"), 2, wait=1.0) as columns:
            if rank == 0:
                columns.any(True)
    except RankLostError as error:
        return str(error)
    return "nothing"


def _meet(rank: int, size: int, port: int) -> None:
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        TORCHELASTIC_USE_AGENT_STORE="True",
        TORCHELASTIC_RESTART_COUNT="0",
    )
    if Path("/sys/class/net/lo").exists():
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"


def found_by(size: int, folder: Path) -> dict[str, Any]:
    """Let so many ranks do `work`; what they found."""
    stores = [TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) for _ in range(2)]
    ports = tuple(store.port for store in stores)
    torch.multiprocessing.spawn(work, (size, ports, folder), nprocs=size)
    found: dict[str, Any] = torch.load(folder / "found.pt", weights_only=False)
    return found
