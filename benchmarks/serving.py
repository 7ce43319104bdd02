"""How many lists a second `caged serve` gives over HTTP, on a made-up artefact; needs the program wrk.

python -m benchmarks.serving                     10,000 items, K = 64, top-20: one by one, and in batches of 100
python -m benchmarks.serving --items 1000000     through an index; also with filters and the knob
python -m benchmarks.serving --out benchmarks/results/serving_10k_cpu2.json

More than 200,000 items have an index; `search` says what recall was measured for it.

Server and wrk share the machine. The load average is that of everything else before the start. wrk keeps 16 connections
open for single lists and 4 for batches, and asks the next question on each as soon as it has the last answer.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from benchmarks.circumstances import circumstances
from benchmarks.made_up_artefact import CATEGORIES, write_made_up
from caged.files import make_parent, write_json
from caged.products.serve import Engine, ServedModel
from caged.products.serve.index_build import LEAST_ITEMS

PACKAGES = ("fastapi", "uvicorn", "uvloop", "httptools", "orjson", "pydantic")  # whose versions a record names
BATCH = 100
ONE_BY_ONE, IN_BATCHES = 16, 4  # connections
WARMING_S = 3  # until every filter was asked for
ASK = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local n = 0
local function one() n = n + 1; return '{"user_id":' .. (n * 7919 % USERS) .. ',"k":20ASIDE}' end
"""
ONE = 'request = function() return wrk.format(nil, "/recommend", nil, one()) end'
MANY = """
request = function()
  local parts = {}
  for place = 1, BATCH do parts[place] = one() end
  return wrk.format(nil, "/recommend/batch", nil, '{"requests":[' .. table.concat(parts, ",") .. ']}')
end
"""


class Serving(NamedTuple):
    """A server that runs."""

    address: str
    ready_s: float  # from the start
    process: int


@contextmanager
def serving(artefact: Path) -> Iterator[Serving]:
    command = [sys.executable, "-m", "caged", "serve", str(artefact), "--port", "0", "--no-access-log"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = ""
        for line in iter(process.stderr.readline, ""):
            said += line
            if found := re.search(r"ready after ([0-9.]+) s: (http://\S+)", line):
                Thread(target=process.stderr.read, daemon=True).start()  # so that it can go on writing
                yield Serving(found[2], float(found[1]), process.pid)
                return
        raise SystemExit(f"the server did not start: {said}")
    finally:
        process.terminate()
        process.wait()


def wrk(address: str, script: Path, connections: int, seconds: int) -> dict[str, float]:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--latency", "-s", str(script), address]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate, slow = re.search(r"Requests/sec:\s+([0-9.]+)", said), re.search(r"99%\s+([0-9.]+)(us|ms|s)\s*\n", said)
    if rate is None or slow is None or "Non-2xx" in said:
        raise SystemExit(f"wrk did not get what it wanted:\n{said}")
    return {"requests_per_s": float(rate[1]), "p99_ms": float(slow[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[slow[2]]}


def asides() -> dict[str, str]:
    """What requests of a large catalogue ask for besides, in Lua; filters keep 1% (another one each time) and half."""
    category = f"\"category\":' .. (n % {CATEGORIES}) .. '"
    return {
        "filter_1_percent": f',"filters":{{{category}}}',
        "filter_half": ',"filters":{"half":1}',
        "knob_half": ',"less_popular":0.5',
        "knob_whole": ',"less_popular":1',
    }


def measure(items: int, users: int, width: int, seconds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        large = items > LEAST_ITEMS
        write_made_up(place / "artefact", items=items, users=users, width=width, index=large)
        ask = ASK.replace("USERS", str(users))
        (place / "one.lua").write_text(ask.replace("ASIDE", "") + ONE)
        (place / "many.lua").write_text(ask.replace("ASIDE", "") + MANY.replace("BATCH", str(BATCH)))
        load = os.getloadavg()[0]
        with serving(place / "artefact") as server:
            one = wrk(server.address, place / "one.lua", ONE_BY_ONE, seconds)
            many = wrk(server.address, place / "many.lua", IN_BATCHES, seconds)
            besides = {}
            for name, aside in asides().items() if large else ():
                (place / "aside.lua").write_text(ask.replace("ASIDE", aside) + ONE)
                wrk(server.address, place / "aside.lua", ONE_BY_ONE, WARMING_S)
                besides[name] = wrk(server.address, place / "aside.lua", ONE_BY_ONE, seconds)
        search = Engine(ServedModel.load(place / "artefact", check=False)).search
    return {
        "items": items,
        "width": width,
        "search": search,
        "load_before": load,
        "ready_s": server.ready_s,
        "one_by_one": {**one, "connections": ONE_BY_ONE},
        "batches": {**many, "connections": IN_BATCHES, "users_per_s": BATCH * many["requests_per_s"]},
        **besides,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure caged serve with wrk.")
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--out", type=Path, help="also write the record to this file")
    given = parser.parse_args(arguments)
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed; it is a package of most systems")
    if given.out is not None:
        make_parent(given.out)
    found = measure(given.items, given.users, given.width, given.seconds)
    record = {**found, **circumstances("benchmarks.serving", packages=PACKAGES)}
    print(json.dumps(record, indent=2))
    if given.out is not None:
        write_json(given.out, record)


if __name__ == "__main__":
    main()
