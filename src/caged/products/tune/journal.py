"""`journal.jsonl`: everything that a search did, a line each, on disk before the search goes on.

A line is a JSON object with its checksum. A process that is killed while it writes leaves at most a torn last line,
which the next one cuts off; any other line that does not have its checksum is an error.

Events: `begin` (the settings; `made_for`, where the trials were made for another goal), `start` and `end` of a trial,
`lost` (a trial whose process died or was stopped; it is queued again with the same values), `frozen` (a reference is
tuned), `closed` (no more trials: the test part is read), `tested` (a final training), `test_defaults` (the defaults are
to be tested, too), `call` (a command on a machine).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from caged.errors import RunError
from caged.files import CHECKSUM, checksum_of, json_ready
from caged.products.tune.space import Values

FILE = "journal.jsonl"
KILLED, STOPPED = "killed", "stopped"
Status = Literal["queued", "running", "complete", "pruned", "failed"]
Setting = Literal["tuned", "default"]
Final = tuple[str, Setting, int]  # method, which of its settings, seed


@dataclass
class Trial:
    """One setting of one method, and what became of it."""

    method: str
    number: int
    values: Values
    status: Status = "queued"
    metrics: dict[str, float | None] | None = None  # of the validation part
    epochs: int = 0  # of all stages
    best_epoch: int = 0
    seconds: float = 0.0
    reason: str | None = None  # why it failed or was pruned
    kills: int = 0  # processes that died over it
    saved: int = 0  # epochs that it was spared, at most: it might have ended by itself
    curve: dict[str, Any] | None = None  # what it reached epoch by epoch

    @property
    def ended(self) -> bool:
        return self.status in ("complete", "pruned", "failed")

    def to_json(self) -> dict[str, Any]:
        """Without the curve, which only the journal holds."""
        return {key: value for key, value in vars(self).items() if value is not None and key != "curve"}


@dataclass
class Journal:
    """The file and what it says; `write` appends an event and takes it in."""

    path: Path
    settings: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)  # what the parts were when the search began
    made_for: str | None = None  # the goal that the trials were proposed for, where it is another one
    trials: dict[tuple[str, int], Trial] = field(default_factory=dict)
    frozen: dict[str, int] = field(default_factory=dict)  # method -> its number of trials
    closed: bool = False
    test_defaults: bool = False
    tested: dict[Final, dict[str, Any]] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)  # which commands on which machines did all this

    @classmethod
    def read(cls, folder: Path) -> Journal:
        """What is on disk, without a torn end; trials that were running are queued again."""
        journal = cls(folder / FILE)
        try:
            content = journal.path.read_bytes()
        except FileNotFoundError as error:
            raise RunError(f"{folder} holds no {FILE}; name the folder that caged tune --out wrote") from error
        except OSError as error:
            raise RunError(f"could not read {journal.path}: {error.strerror}; restore it") from error
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            journal._take(_checked(line, journal.path, number))
        if not journal.settings:
            raise RunError(f"{journal.path} does not say what was searched; start a new search with another --out")
        return journal

    def go_on(self) -> None:
        """Before anything is written by another process: cut a torn end off, and queue what was running."""
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)
        for trial in self.trials.values():
            if trial.status == "running":
                self.write("lost", method=trial.method, trial=trial.number, why=KILLED)

    def write(self, event: str, **values: Any) -> None:
        entry = json_ready({"event": event, **values})
        line = json.dumps({**entry, CHECKSUM: checksum_of(entry)}, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            with self.path.open("ab") as handle:
                handle.write(line.encode("utf-8"))
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise RunError(
                f"could not write {self.path}: {error.strerror}; free space, then go on with --resume"
            ) from error
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        event = entry["event"]
        if event == "begin":
            self.settings, self.data = entry["settings"], entry["data"]
            self.made_for = entry.get("made_for")
        elif event == "start":
            trial = self.trials.setdefault(
                (entry["method"], entry["trial"]), Trial(entry["method"], entry["trial"], entry["values"])
            )
            trial.status = "running"
        elif event == "end":
            trial = self.trials[entry["method"], entry["trial"]]
            trial.status, trial.metrics, trial.reason = entry["status"], entry.get("metrics"), entry.get("reason")
            trial.epochs, trial.best_epoch, trial.seconds = entry["epochs"], entry["best_epoch"], entry["seconds"]
            trial.saved, trial.curve = entry.get("saved", 0), entry.get("curve")
        elif event == "lost":
            trial = self.trials[entry["method"], entry["trial"]]
            trial.status = "queued"
            trial.kills += entry["why"] == KILLED
        elif event == "frozen":
            self.frozen[entry["method"]] = entry["trials"]
        elif event == "closed":
            self.closed = True
        elif event == "tested":
            self.tested[entry["method"], entry["setting"], entry["seed"]] = entry
        elif event == "test_defaults":
            self.test_defaults = True
        elif event == "call":
            self.calls.append({key: value for key, value in entry.items() if key != "event"})

    def of(self, method: str) -> list[Trial]:
        """The trials of a method by number."""
        return [trial for (name, _), trial in sorted(self.trials.items()) if name == method]


def _checked(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        told = entry.pop(CHECKSUM)
    except (ValueError, KeyError, AttributeError, TypeError):
        told, entry = None, {}
    if told is None or told != checksum_of(entry):
        raise RunError(f"line {number} of {path} is not what was written: it lacks its checksum; restore the file")
    return dict(entry)
