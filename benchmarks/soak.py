"""Does `caged serve` stay right, answer everybody and keep its memory, for a long time and while models change?

python -m benchmarks.soak --requests 1_000_000 --swap-every 30 --bad 5% --out benchmarks/results/soak_cpu2.json

Two models of a made-up shop take turns in the folder that is served. Good requests are for known ids, histories,
filters, the knob, exclusions and batches of 10; every answer is compared with what `caged recommend` says for the model
that it names. Bad ones are refused with the status that is theirs, or given up half-way. Client and server share the
machine. Memory is the server's resident set: its median over the second tenth of the requests against that over the
last tenth. Ends with code 1 if anything does not hold. Linux only.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import uvloop

from benchmarks.circumstances import circumstances
from benchmarks.serving import PACKAGES, Serving, serving
from benchmarks.soak_client import Tally, fire
from benchmarks.soak_questions import METHODS, Question, Truth, Writer, write_models
from caged.files import make_parent, write_json
from caged.products.serve.served import Served

GOOD = 4000  # different good questions
WIDTH = 16  # connections
FLAT = 0.05


class Swapper(Thread):
    """Puts the artefacts into the served folder in turns, by renaming."""

    def __init__(self, artefacts: Sequence[Path], place: Path, every_s: float) -> None:
        super().__init__(daemon=True)
        self._artefacts, self._place, self._every_s = artefacts, place, every_s
        self.swaps = 0
        self._end = Event()

    def put(self, artefact: Path) -> None:
        new, old = self._place.with_name("new"), self._place.with_name("old")
        shutil.copytree(artefact, new)
        if self._place.exists():
            self._place.rename(old)
        new.rename(self._place)
        shutil.rmtree(old, ignore_errors=True)

    def run(self) -> None:
        while not self._end.wait(self._every_s):
            self.swaps += 1
            self.put(self._artefacts[self.swaps % len(self._artefacts)])

    def stop(self) -> None:
        self._end.set()
        self.join()


class Watch(Thread):
    """Every second: how far it is and how much memory the server has; every ten seconds a line about it."""

    def __init__(self, process: int, tally: Tally, swapper: Swapper, requests: int) -> None:
        super().__init__(daemon=True)
        self._status = Path(f"/proc/{process}/status")
        self._tally, self._swapper, self._requests = tally, swapper, requests
        self.memory: list[tuple[float, int]] = []  # share of the requests, bytes
        self._end = Event()

    def run(self) -> None:
        begun = time.monotonic()
        while not self._end.wait(1.0):
            share = self._tally.kinds.total() / self._requests
            self.memory.append((share, resident(self._status)))
            if len(self.memory) % 10 == 0:
                self._tell(share, time.monotonic() - begun)

    def _tell(self, share: float, seconds: float) -> None:
        tally = self._tally
        done = round(share * self._requests)
        left = (seconds / share - seconds) / 60 if share else float("inf")
        print(
            f"{done:,} of {self._requests:,} ({done / seconds:,.0f}/s, {left:.0f} min left): {tally.wrong} wrong, "
            f"{tally.errors} errors, {self._swapper.swaps} swaps, {self.memory[-1][1] / 2**20:.1f} MiB",
            file=sys.stderr,
            flush=True,
        )

    def stop(self) -> None:
        self._end.set()
        self.join()


def resident(status: Path) -> int:
    found = re.search(r"VmRSS:\s+([0-9]+) kB", status.read_text())
    assert found is not None
    return 1024 * int(found[1])


def memory_kept(samples: Sequence[tuple[float, int]]) -> dict[str, float] | None:
    """Medians after the beginning and at the end; None where the test was too short to have both."""
    first = [size for share, size in samples if 0.1 <= share < 0.2]
    last = [size for share, size in samples if share >= 0.9]
    if not first or not last:
        return None
    before, after = statistics.median(first), statistics.median(last)
    return {"after_warm_up_bytes": before, "at_the_end_bytes": after, "growth": after / before - 1}


def soak(requests: int, swap_every_s: float, bad_share: float, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        models, table = write_models(place, seed)
        artefacts = [place / method for method in METHODS]
        versions = {method: Served(method, place / method).current.version for method in METHODS}
        truths = {versions[method]: Truth(model, seed) for method, model in models.items()}
        writer = Writer(truths, table, seed)
        questions, turns = drawn(writer.good(GOOD), writer.bad(), requests, bad_share, seed)
        swapper = Swapper(artefacts, place / "served", swap_every_s)
        swapper.put(artefacts[0])
        with serving(place / "served") as server:
            return _asked(server, questions, turns, swapper, versions)


def drawn(
    good: Sequence[Question], bad: Sequence[Question], requests: int, bad_share: float, seed: int
) -> tuple[list[Question], list[int]]:
    """All questions, and which is asked when."""
    draw = np.random.default_rng([seed, 3])
    is_bad = draw.random(requests) < bad_share
    turns = np.where(
        is_bad, len(good) + draw.integers(len(bad), size=requests), draw.integers(len(good), size=requests)
    )
    return [*good, *bad], turns.tolist()


def _asked(
    server: Serving, questions: Sequence[Question], turns: Sequence[int], swapper: Swapper, versions: dict[str, str]
) -> dict[str, Any]:
    tally = Tally()
    watch = Watch(server.process, tally, swapper, len(turns))
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    begun = time.monotonic()
    swapper.start()
    watch.start()
    uvloop.run(fire((host, int(port)), questions, turns, tally, WIDTH))
    seconds = time.monotonic() - begun
    watch.stop()
    swapper.stop()
    time.sleep(3)  # for the watcher to take the last one
    p50, p99 = np.percentile(np.array(tally.seconds), (50, 99)) * 1000
    return {
        "requests": tally.kinds.total(),
        "seconds": seconds,
        "requests_per_s": len(turns) / seconds,
        "connections": WIDTH,
        "kinds": dict(sorted(tally.kinds.items())),
        "answers_by_model": {method: tally.versions[version] for method, version in versions.items()},
        "wrong_answers": tally.wrong,
        "errors_on_good_requests": tally.errors,
        "bad_requests_answered_otherwise": tally.bad_otherwise,
        "swaps": swapper.swaps,
        **_counted(server.address),
        "latency_ms": {"p50": p50, "p99": p99},
        "memory": memory_kept(watch.memory),
        "examples": tally.examples,
    }


def _counted(address: str) -> dict[str, int]:
    """What the server says about its swaps."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    names = {"swaps_taken": "caged_swaps_total", "swaps_refused": "caged_swaps_refused_total"}
    found = {name: re.search(rf"^{metric}{{.*}} ([0-9]+)$", text, re.MULTILINE) for name, metric in names.items()}
    return {name: int(match[1]) for name, match in found.items() if match}


def what_does_not_hold(found: dict[str, Any]) -> list[str]:
    memory = found["memory"]
    checks = {
        "an answer was wrong": found["wrong_answers"] == 0,
        "a good request got an error": found["errors_on_good_requests"] == 0,
        "a bad request got another answer than it should": found["bad_requests_answered_otherwise"] == 0,
        "a swap was not taken": found["swaps"] == found["swaps_taken"] and found["swaps_refused"] == 0,
        "memory grew": memory is None or memory["growth"] <= FLAT,
    }
    return [sentence for sentence, holds in checks.items() if not holds]


def share(text: str) -> float:
    """
    >>> share("5%"), share("0.05")
    (0.05, 0.05)
    """
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--swap-every", type=float, default=30.0, help="seconds")
    parser.add_argument("--bad", type=share, default=0.05, help="share of bad requests, such as 5%%")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also write the record to this file")
    given = parser.parse_args(arguments)
    if given.out is not None:
        make_parent(given.out)
    found = soak(given.requests, given.swap_every, given.bad, given.seed)
    failed = what_does_not_hold(found)
    record = {**found, "does_not_hold": failed, **circumstances("benchmarks.soak", packages=PACKAGES)}
    print(json.dumps(record, indent=2))
    if given.out is not None:
        write_json(given.out, record)
    if failed:
        raise SystemExit("; ".join(failed))


if __name__ == "__main__":
    main()
