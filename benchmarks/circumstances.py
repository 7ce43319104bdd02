"""Where, when and by which command something was measured: what every record of a benchmark says."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import torch

from caged.runs.environment import hardware
from caged.runs.results import shareable
from caged.runs.versions import versions


def circumstances(module: str, device: torch.device | None = None, packages: Sequence[str] = ()) -> dict[str, Any]:
    """`packages` are those beside the usual ones whose version matters."""
    return {
        "command": shareable(shlex.join(["python", "-m", module, *sys.argv[1:]])),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        # Over the last 1, 5 and 15 minutes: whether the machine was free for this.
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "versions": versions() | {name: version(name) for name in packages},
        "hardware": hardware(device or torch.device("cpu")),
    }
