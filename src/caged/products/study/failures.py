"""Why a process of a study failed, and the record that says so."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from caged.files import make_parent, write_json
from caged.products.study.plan import PlannedRun
from caged.products.study.records import Recorded, adjustment_of, specification
from caged.runs.folder import FORMAT, now
from caged.runs.results import shareable

ERROR = "error: "
COLUMN = re.compile(r"--(user|item|rating|timestamp)-column")


def reason_in(log: Path, code: int) -> str:
    """The sentence that the command line ended with, else the last thing it said, else its exit code."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    told = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
    if code < 0:
        name = signal.Signals(-code).name
        more = ", as systems do when memory runs out" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{more}"
    return told[-1] if told else lines[-1] if lines else f"its process ended with exit code {code}"


def as_a_plan_says_it(reason: str) -> str:
    """What the command line advises, in the words of a plan."""
    column = COLUMN.search(reason)
    return reason if column is None else f'{reason} (in a plan: set = ["data.{column[1]}_column=NAME"])'


def record_failure(run: PlannedRun, record: Recorded, reason: str, command: Sequence[str]) -> None:
    """What is recorded of the run says now that it failed, and why; its process could not."""
    content = record.content if record.content is not None and record.state != "other" else _begun(run, command)
    make_parent(record.path)
    write_json(record.path, shareable({**content, "status": "failed", "error": reason, "ended": now()}))


def _begun(run: PlannedRun, command: Sequence[str]) -> dict[str, Any]:
    """As much of a record as is known of a run that wrote nothing about itself."""
    training = run.needs if run.kind == "adjust" and run.needs is not None else run
    spec = replace(specification(training), source=run.data, seed=run.seed).to_json()
    needed = run.needs if run.kind == "train" else training.needs
    start = None
    if needed is not None:
        config = specification(needed).to_json()["config"]
        start = {"run": needed.name, "method": needed.method, "seed": needed.seed, "config": config}
    return {
        "format": FORMAT,
        "status": "failed",
        "command": shlex.join(command),
        "spec": spec,
        **({"init": start} if start is not None else {}),
        **({"adjustment": {"form": adjustment_of(run)[0]}} if run.kind == "adjust" else {}),
        "protocol": run.protocol,
        "metrics": None,
    }
