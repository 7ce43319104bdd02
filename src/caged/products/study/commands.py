"""A run of a plan as the command that makes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from caged.products.study.plan import PlannedRun


@dataclass(frozen=True)
class Places:
    """Where a study reads and writes."""

    results: Path  # the records
    runs: Path  # the run folders

    def folder(self, run: PlannedRun) -> Path:
        return self.runs / run.name

    def record(self, run: PlannedRun) -> Path:
        return self.results / run.place

    def log(self, run: PlannedRun) -> Path:
        """What its process says."""
        return self.runs / "logs" / f"{run.name}.txt"

    def market(self, run: PlannedRun) -> Path:
        """The simulated data of a run that has some."""
        return self.runs / "data" / run.data

    def market_as_text(self, run: PlannedRun) -> Path:
        """The same in the form that protocol `paper` needs, under the same name."""
        return self.runs / "data-as-text" / run.data

    def data(self, run: PlannedRun) -> str:
        if run.market is None:
            return run.data
        return str(self.market_as_text(run) if run.protocol == "paper" else self.market(run))


def command(
    run: PlannedRun, places: Places, *, threads: int | None = None, device: str = "auto", record: bool = True
) -> list[str]:
    """What makes the run anew. `threads` and `device` are for runs of which the plan fixes none."""
    out = _recording(run, places) if record else []
    device = device if run.device == "auto" else run.device
    where = ["--device", device] if device != "auto" else []
    if run.kind == "adjust":
        assert run.needs is not None
        return ["adjust", str(places.folder(run.needs)), *run.options, *where, *out, "-o", str(places.folder(run))]
    threads = threads if run.threads is None else run.threads
    return [
        *("train", "--data", places.data(run), "--protocol", run.protocol, "--method", run.method),
        *(text for preset in run.presets for text in ("--preset", preset)),
        *(text for setting in run.settings for text in ("--set", setting)),
        *("--seed", str(run.seed)),
        *where,
        *(["--threads", str(threads)] if threads is not None else []),
        *(["--init", str(places.folder(run.needs))] if run.needs is not None else []),
        *run.options,
        *out,
        *("--no-report", "--out", str(places.folder(run))),
    ]


def _recording(run: PlannedRun, places: Places) -> list[str]:
    return ["--record", str(places.results), *(["--variant", run.variant] if run.variant else [])]


def resume_command(run: PlannedRun, places: Places, *, record: bool = True) -> list[str]:
    """What goes on with a training from its last checkpoint."""
    out = _recording(run, places) if record else []
    return ["train", "--resume", str(places.folder(run)), *out, "--no-report"]
