"""Measuring a selection of the benchmarks, and the record of it."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.cases import Case, cases
from benchmarks.circumstances import circumstances
from benchmarks.setting import Prepared, Setting
from benchmarks.timing import Ceilings, interleaved
from caged.errors import ConfigError, suggestion
from caged.runs.environment import check_threads, resolve_device
from caged.threads import threads

QUICK_ROUNDS = 2
Result = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What to measure.

    `only` are patterns with * and ? or parts of names, divided by commas; `threads` None: as the target asks.
    """

    only: str | None = None
    device: str = "auto"
    threads: int | None = None
    quick: bool = False
    profile: bool = False  # also what a training step is made of, where a benchmark has one


def select(only: str | None) -> list[Case]:
    known = cases()
    if only is None:
        return [case for name, case in known.items() if "/tiny" not in name]
    chosen: dict[str, Case] = {}
    for pattern in map(str.strip, only.split(",")):
        if not pattern:
            raise ConfigError(f"--only is '{only}', and a pattern in it is empty; take out the comma, or the option")
        found = {name: case for name, case in known.items() if fnmatch.fnmatch(name, pattern) or pattern in name}
        if not found:
            raise ConfigError(
                f"no benchmark matches '{pattern}'; known: {', '.join(known)}{suggestion(pattern, known)}"
            )
        chosen |= found
    return list(chosen.values())


def run(
    request: Request,
    started: Callable[[str], None] = lambda name: None,
    measured: Callable[[list[Result]], None] = lambda results: None,
) -> list[Result]:
    """Measure; `started` hears the name of each benchmark before it runs, `measured` all results so far after it."""
    check_threads(request.threads)
    chosen = select(request.only)
    device = resolve_device(request.device)
    bench = _Bench(device, request)
    results: list[Result] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]parse.*", category=UserWarning)  # of torch.sparse
        for case in chosen:
            started(case.name)
            results.append(bench(case))
            measured(results)
    return results


def record(results: list[Result], request: Request) -> dict[str, Any]:
    """The results with all that one needs to judge them later."""
    where = circumstances("benchmarks", resolve_device(request.device))
    return {**where, "quick": request.quick, "results": results}


class _Bench:
    """Measures cases, and the ceilings of each number of threads once."""

    def __init__(self, device: torch.device, request: Request) -> None:
        self.device, self.asked_threads, self.quick = device, request.threads, request.quick
        self.profile = request.profile
        self._ceilings: dict[int, Ceilings] = {}

    def __call__(self, case: Case) -> Result:
        cores = torch.get_num_threads()
        if self.asked_threads is not None:
            return self._measure(case, self.asked_threads)
        on_one = case.one_thread and self.device.type == "cpu"
        result = self._measure(case, 1 if on_one else cores)
        if on_one and cores > 1:
            beside = self._measure(case, cores)
            shown = ("threads", "ours_s", "reference_s", "ratio", "fraction_of_ceiling", "others")
            result["all_cores"] = {key: beside[key] for key in shown}
        return result

    def _measure(self, case: Case, count: int) -> Result:
        with threads(count):
            ceilings = self._ceilings.setdefault(count, Ceilings(self.device, self.quick))
            prepared = case.prepare(Setting(self.device, count, self.quick, ceilings))
            return {"name": case.name, **self._result(prepared, count, case.rounds)}

    def _result(self, prepared: Prepared, count: int, rounds: int) -> Result:
        rounds = min(rounds, QUICK_ROUNDS) if self.quick else rounds
        measured = {"ours": prepared.ours, "reference": prepared.reference, **prepared.others}
        taken = interleaved(measured, rounds, warm_up=not prepared.once)
        ours, plain = taken.pop("ours"), taken.pop("reference")
        return {
            "ours_s": ours,
            "reference_s": plain,
            "ratio": plain / ours,
            "threads": count,
            "fraction_of_ceiling": prepared.fraction_of_ceiling(ours),
            "ceiling": prepared.ceiling,
            "device": self.device.type,
            "data": prepared.data,
            "rounds": rounds,
            **({"profile": prepared.profile()} if self.profile and prepared.profile is not None else {}),
            "others": {name: {"seconds": value, "ratio_to_ours": value / ours} for name, value in taken.items()},
            **{name: value for name, value in prepared.facts.items() if name not in ("ours_s", "reference_s")},
        }
