"""A study in words and tables: what is to be run and what it takes, what is recorded, what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from caged.page.text_table import TextTable
from caged.products.study.plan import PlannedRun
from caged.products.study.runner import Outcome
from caged.products.study.schedule import Schedule, Task
from caged.products.study.study import Study

UNKNOWN = "unknown"


def duration(seconds: float | None) -> str:
    """
    >>> duration(8.4), duration(125), duration(5400), duration(None)
    ('8 s', '2 min', '1.5 h', 'unknown')
    """
    if seconds is None:
        return UNKNOWN
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def schedule_tables(schedule: Schedule) -> list[TextTable]:
    """The runs to come, in their order: one line for the seeds of a row."""
    if not schedule.tasks:
        return []
    on_gpu = any(task.estimate.device_memory is not None for task in schedule.tasks)
    rows = [_task_row(tasks, on_gpu=on_gpu) for tasks in _together(schedule.tasks)]
    gpu = ["on the GPU"] if on_gpu else []
    headers = ["dataset", "protocol", "row", "seeds", "time each", "memory", *gpu, "from"]
    return [TextTable("runs to come", headers, rows, keys=3, spare=[*gpu, "from"])]


def _together(tasks: Sequence[Task]) -> list[list[Task]]:
    """Neighbours that differ in their seed only."""
    found: list[list[Task]] = []
    for task in tasks:
        if found and _row_of(found[-1][0].run) == _row_of(task.run) and found[-1][0].action == task.action:
            found[-1].append(task)
        else:
            found.append([task])
    return found


def _row_of(run: PlannedRun) -> tuple[str, str, str]:
    return run.dataset, run.protocol, run.row


def _task_row(tasks: list[Task], *, on_gpu: bool) -> list[str]:
    first = tasks[0]
    notes = {"resume": ", goes on", "record": ", only its record"}.get(first.action, "")
    notes += "" if first.wanted else ", another run needs it"
    return [
        *_row_of(first.run),
        ", ".join(str(task.run.seed) for task in tasks),
        duration(first.seconds),
        _gib(first.estimate.memory),
        *([_gib(first.estimate.device_memory)] if on_gpu else []),
        f"{first.estimate.basis}{notes}",
    ]


def _gib(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f} GiB"


def schedule_sentences(study: Study) -> list[str]:
    schedule = study.schedule
    recorded = f"{len(schedule.finished)} of {len(study.runs)} are recorded in {study.places.results}."
    if not schedule.tasks:
        said = f"{'None of the missing runs can be run now' if schedule.blocked else 'Nothing to run'}: {recorded}"
    else:
        time = f"about {duration(schedule.seconds)}" if schedule.unknown < len(schedule.tasks) else UNKNOWN
        if 0 < schedule.unknown < len(schedule.tasks):
            time += f" for those that can be estimated, {schedule.unknown} cannot"
        said = f"{_count(schedule.tasks)} to come on {study.device}, time: {time}. {recorded}"
    sentences = [said]
    if schedule.finished and not schedule.tasks and not schedule.failed and not schedule.blocked:
        sentences.append("To run them yourself, record them elsewhere: --record my-results.")
    sentences += _reasons("failed before (--retry-failed tries again)", schedule.failed)
    sentences += _reasons("cannot be run here", schedule.blocked)
    return sentences


def _count(runs: Sequence[Any]) -> str:
    return "1 run" if len(runs) == 1 else f"{len(runs)} runs"


def _reasons(kind: str, reasons: dict[PlannedRun, str]) -> Iterable[str]:
    """One sentence per reason, with the runs that it keeps back."""
    together: dict[str, list[str]] = {}
    for run, reason in reasons.items():
        together.setdefault(reason, []).append(run.name)
    for reason, names in together.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{more}: {kind}: {reason}"


def status_tables(study: Study) -> list[TextTable]:
    """How far each section is."""
    due = {task.run: task for task in study.schedule.tasks if task.wanted}
    rows = []
    for section, about in study.plan.sections.items():
        runs = [run for run in study.runs if section in run.sections]
        if not runs:
            continue
        tasks = [due[run] for run in runs if run in due]
        rows.append(
            [
                section,
                f"{len(runs)}",
                f"{sum(study.found[run].finished for run in runs)}",
                f"{sum(study.found[run].state == 'failed' for run in runs)}",
                f"{sum(study.found[run].state in ('missing', 'unfinished', 'other') for run in runs)}",
                _sum_of(tasks) if tasks else "-",
                about,
            ]
        )
    headers = ["section", "runs", "recorded", "failed", "open", "time left", "what"]
    return [TextTable(f"{study.plan.title}, on {study.device}", headers, rows, spare=["what"])]


def _sum_of(tasks: Sequence[Task]) -> str:
    known = [task.seconds for task in tasks if task.seconds is not None]
    if not known:
        return UNKNOWN
    return duration(sum(known)) if len(known) == len(tasks) else f"{duration(sum(known))} and more"


def outcome_sentences(outcome: Outcome) -> list[str]:
    parts = [
        (outcome.finished, "finished"),
        (list(outcome.failed), "failed"),
        (list(outcome.refused), "could not begin"),
        (outcome.stopped, "stopped, to be gone on with"),
        (outcome.too_long, "not begun, longer than the time that was left"),
        (outcome.waiting, "not begun"),
    ]
    said = ", ".join(f"{len(runs)} {what}" for runs, what in parts if runs)
    return [f"Of the runs, {said}."] if said else []


def schedule_json(study: Study) -> dict[str, Any]:
    schedule = study.schedule
    return {
        "plan": study.plan.path,
        "results": study.places.results,
        "device": study.device,
        "recorded": [run.name for run in schedule.finished],
        "failed": {run.name: reason for run, reason in schedule.failed.items()},
        "blocked": {run.name: reason for run, reason in schedule.blocked.items()},
        "to_run": [
            {
                "run": task.run.name,
                "record": str(task.run.place),
                "action": task.action,
                "sections": list(task.run.sections),
                "seconds": task.seconds,
                "memory_gib": task.estimate.memory,
                "device_memory_gib": task.estimate.device_memory,
                "basis": task.estimate.basis,
            }
            for task in schedule.tasks
        ],
        "seconds": schedule.seconds,
        "unknown": schedule.unknown,
    }


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "finished": [run.name for run in outcome.finished],
        "failed": {run.name: reason for run, reason in outcome.failed.items()},
        "refused": {run.name: reason for run, reason in outcome.refused.items()},
        "stopped": [run.name for run in outcome.stopped],
        "not_begun": [run.name for run in [*outcome.too_long, *outcome.waiting]],
    }
