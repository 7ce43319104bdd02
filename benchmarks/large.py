"""Top-20 lists over a catalogue of a million items for users out of a million: time of a sample, and peak memory.

`python -m benchmarks.large` prints one JSON object. It is a process of its own because the peak that the system
reports never goes down again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

import numpy as np
import torch

from benchmarks import reference
from benchmarks.memory import peak_memory
from benchmarks.timing import seconds
from caged.errors import RunError
from caged.evaluation.topk import LEAST_USERS, Ranker
from caged.graph import Tables
from caged.models.contract import DotScorer

USERS = ITEMS = 1_000_000
WIDTH = 64
K = 20
OVERHEAD = 512 * 2**20  # of interpreter and libraries, at most


def in_own_process(device: str, threads: int, *, quick: bool) -> dict[str, Any]:
    """Time and peak memory of a sample of users; `quick` takes a hundredth of both sides."""
    rows = USERS // 100 if quick else USERS
    command = [sys.executable, "-m", "benchmarks.large", "--device", device, "--threads", str(threads)]
    command += ["--users", str(rows), "--items", str(rows), "--sample", "64" if quick else "256"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"the benchmark of a large catalogue failed: {done.stderr.strip().splitlines()[-1]}")
    return dict(json.loads(done.stdout))


def measure(users: int, items: int, sample: int, device: torch.device) -> dict[str, Any]:
    before = peak_memory()
    generator = torch.Generator().manual_seed(1)
    vectors = Tables(*(torch.randn(rows, WIDTH, generator=generator).to(device) for rows in (users, items)))
    asked = np.linspace(0, users - 1, sample).astype(np.int64)
    scorer = DotScorer(vectors)
    rank = Ranker(asked, K, device=device)
    ours = min(seconds(lambda: rank(scorer), device) for _ in range(3))
    peak = peak_memory()
    host = [part.cpu().numpy() for part in vectors]
    nothing = [np.zeros(0, dtype=np.int64)] * sample
    # 64 users per block as ours: with 512 it would take 4 GB for scores and twice that for their order
    plain = min(
        seconds(lambda: reference.top_k(host[0][asked], host[1], nothing, K, block=LEAST_USERS), device)
        for _ in range(2)
    )
    tables = 4 * WIDTH * (users + items)
    block = 4 * items * LEAST_USERS
    budget = tables + 2 * block + OVERHEAD
    return {
        "ours_s": ours,
        "reference_s": plain,
        "users": users,
        "items": items,
        "sampled_users": sample,
        "flops": 2 * sample * items * WIDTH,
        "seconds_for_all_users_extrapolated": ours / sample * users,
        "peak_memory_bytes": peak,
        "memory_before_bytes": before,
        "memory_budget_bytes": budget,
        "within_budget": peak <= budget,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("users", "items", "sample", "threads"):
        parser.add_argument(f"--{option}", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    result = measure(chosen.users, chosen.items, chosen.sample, torch.device(chosen.device))
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
