"""How an epoch and its memory grow with the number of interactions, users and items fixed, `batch_size = "auto"`.

`python -m benchmarks.growth` prints one JSON object. The log is generated in one process and trained on in another,
because the peak that the system reports never goes down again. An epoch is its sampling and as many times the median
step as it has steps; only some steps are taken. Generating 50 million pairs takes longer than measuring: the folder
that CAGED_BENCH_LOGS names keeps them for the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.graphs import Shape, generated
from benchmarks.memory import peak_memory
from benchmarks.timing import seconds
from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.errors import RunError
from caged.files import replacing
from caged.graph import BipartiteGraph, Epoch, Sampler
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.optimiser import adam
from caged.seeding import Generators
from caged.training import TrainConfig
from caged.training.step import make_steps

USERS, ITEMS = 300_000, 100_000
WIDTH, LAYERS = 64, 3
STEPS = 5  # taken, after one that is not counted
QUICK_SHARE = 0.01  # of users, items and interactions


def in_own_process(interactions: int, device: str, threads: int, *, quick: bool) -> dict[str, Any]:
    share = QUICK_SHARE if quick else 1.0
    sizes = [int(share * size) for size in (USERS, ITEMS, interactions)]
    with tempfile.TemporaryDirectory() as temporary:
        log = Path(os.environ.get("CAGED_BENCH_LOGS", temporary)) / f"{sizes[-1]}.npy"
        if not log.exists():
            _call("generate", log, *sizes)
        return dict(json.loads(_call("measure", log, *sizes, "--device", device, "--threads", threads)))


def _call(*arguments: object) -> str:
    command = [sys.executable, "-m", "benchmarks.growth", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"the benchmark of growth failed with exit code {done.returncode}: {last}")
    return done.stdout


def generate(log: Path, shape: Shape) -> None:
    with replacing(log) as temporary, temporary.open("wb") as file:
        np.save(file, generated(shape).keys)


def measure(log: Path, shape: Shape, device: torch.device) -> dict[str, Any]:
    keys = np.load(log)
    train = Interactions(IdMap.range(shape.users), IdMap.range(shape.items), keys // shape.items, keys % shape.items)
    del keys
    config = TrainConfig(batch_size="auto")
    batch_size, learning_rate = config.batches(len(train))
    graph = BipartiteGraph.from_interactions(train, device)
    generators = Generators(1, device)
    method = LightGCN(LightGCNConfig(embedding_size=WIDTH, layers=LAYERS))
    method.prepare(graph, generators)
    optimizer = adam(method.parameters(method.stages()[0]), learning_rate, device)
    sampler = Sampler(graph, batch_size)
    steps = make_steps(method, optimizer, generators, record=True)
    drawn: list[Epoch] = []
    sampling = seconds(lambda: drawn.append(sampler.epoch(generators["sampling"])), device)
    one = Epoch(*(part[:1] for part in drawn[0].parts))
    taken = [seconds(lambda: steps.run([one]), device) for _ in range(STEPS + 1)][1:]
    return {
        "ours_s": sampling + sampler.steps * median(taken),
        "sampling_s": sampling,
        "step_s": median(taken),
        "steps": sampler.steps,
        "extrapolated_from_steps": STEPS,
        "batch_size": batch_size,
        "users": shape.users,
        "items": shape.items,
        "interactions": len(train),
        "width": WIDTH,
        "layers": LAYERS,
        "peak_memory_bytes": peak_memory(),
        **({"peak_gpu_bytes": torch.cuda.max_memory_allocated(device)} if device.type == "cuda" else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("generate", "measure"))
    parser.add_argument("log", type=Path)
    for size in ("users", "items", "interactions"):
        parser.add_argument(size, type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    shape = Shape(chosen.users, chosen.items, chosen.interactions)
    if chosen.action == "generate":
        generate(chosen.log, shape)
        return
    torch.set_num_threads(chosen.threads)
    sys.stdout.write(json.dumps(measure(chosen.log, shape, torch.device(chosen.device))) + "\n")


if __name__ == "__main__":
    main()
