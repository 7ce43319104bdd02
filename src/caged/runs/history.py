"""`history.jsonl` of a run, and the curve of it that a record keeps."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from caged.errors import RunError
from caged.files import json_ready, write_bytes


class History:
    """Appended per epoch, cut back to the checkpoint on resume."""

    def __init__(self, path: Path, keep: int) -> None:
        self.path = path
        write_bytes(path, b"".join(epochs_told(path, keep)))

    def epoch(self, line: dict[str, Any]) -> None:
        complete = self.path.stat().st_size
        try:
            with self.path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(json_ready(line), allow_nan=False) + "\n")
        except OSError as error:
            with suppress(OSError):
                os.truncate(self.path, complete)  # no half of a line stays
            raise RunError(f"could not write {self.path}: {error.strerror}; free space, then resume the run") from error


def learning_curve(path: Path, metric: str) -> list[dict[str, Any]]:
    """What validation said, stage by stage: the epochs that were validated and the metric after each."""
    curves: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        told = json.loads(line)
        if (told.get("validation") or {}).get(metric) is not None:
            curve = curves.setdefault(told["stage"], {"stage": told["stage"], "epochs": [], "values": []})
            curve["epochs"].append(told["epoch"])
            curve["values"].append(round(told["validation"][metric], 5))
    return list(curves.values())


def epochs_told(path: Path, count: int) -> list[bytes]:
    """The lines of the first `count` epochs; an error where there are fewer of them."""
    try:  # as bytes: what lies beyond the checkpoint may be damaged, and is cut off
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; make it readable, or start a new run") from error
    if len(lines) < count:
        found = f"has {len(lines)} lines" if path.exists() else "is missing"
        raise RunError(
            f"{path} {found}, but the checkpoint of this run is of epoch {count}; restore the file, or delete "
            f"{path.parent / 'checkpoint'} to train from the start"
        )
    return lines[:count]
