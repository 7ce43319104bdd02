"""Which record belongs to which run of a plan, and whether it is one: the same settings, on the same data.

A record is found by its place. It counts only if its run had the settings that the plan says today: somebody may have
changed the plan or a preset since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from caged.arguments import choice
from caged.config import build, value_text
from caged.data.known import DATASETS
from caged.data.market import MarketConfig
from caged.errors import CagedError, RunError
from caged.evaluation.adjust.choice import FORMS, KEEP, OF_SCORES, parsed_share
from caged.files import json_ready, read_json
from caged.products.study.plan import PlannedRun

if TYPE_CHECKING:
    from caged.runs.spec import ExperimentSpec

MARKET = "simulation.json"
State = Literal["finished", "failed", "unfinished", "missing", "other"]


@dataclass(frozen=True)
class Recorded:
    """What is known about a run of a plan."""

    run: PlannedRun
    path: Path
    state: State
    content: dict[str, Any] | None = None  # of the record
    reason: str | None = None  # why it failed, or what is other than the plan says

    @property
    def finished(self) -> bool:
        return self.state == "finished"

    @property
    def seconds(self) -> float:
        """That were spent on it, as far as it got."""
        total = ((self.content or {}).get("seconds") or {}).get("total", 0.0)
        return float(total) if isinstance(total, int | float) else 0.0

    @property
    def seconds_alone(self) -> float:
        """Its share of them, where other runs were made beside it."""
        return self.seconds / side_by_side(self.content or {})


def side_by_side(content: Mapping[str, Any]) -> float:
    """How many runs shared the machine with that of a record, itself included, on average; older records do not say."""
    shared = (content.get("hardware") or {}).get("side_by_side", 1)
    return float(shared) if isinstance(shared, int | float) and shared >= 1 else 1.0


Look = Callable[[PlannedRun, Mapping[str, Any]], str | None]  # at a record: why it is not of the run; None: it is


def recorded(
    runs: Iterable[PlannedRun], root: Path, look: Look = lambda run, content: None
) -> dict[PlannedRun, Recorded]:
    """The record of each run below `root`; `look` may know more about the data of a run than its record says."""
    return _on_one_split({run: _read(run, root, look) for run in runs})


def _read(run: PlannedRun, root: Path, look: Look) -> Recorded:
    path = root / run.place
    if not path.is_file():
        return Recorded(run, path, "missing")
    try:
        content = read_json(path)
    except RunError as error:
        return Recorded(run, path, "other", reason=str(error))
    if not has_form(content):
        return Recorded(run, path, "other", reason="it is not a record, or damaged")
    reason = difference(run, content) or other_market(run, root)
    if reason is None and content["status"] == "finished":
        reason = look(run, content)
    return Recorded(run, path, "other", content, reason) if reason is not None else _of_run(run, path, content)


def _of_run(run: PlannedRun, path: Path, content: dict[str, Any]) -> Recorded:
    status = content["status"]
    if status == "finished":
        return Recorded(run, path, "finished", content)
    if status == "failed":
        return Recorded(run, path, "failed", content, content.get("error") or "no reason was recorded")
    return Recorded(run, path, "unfinished", content)


_TABLES = ("hardware", "dataset", "seconds", "metrics", "init", "adjustment", "training", "memory")


def has_form(content: Any) -> bool:
    """Whether what is read here, and by who reads it next, is of the kinds that a run writes."""
    if not isinstance(content, dict) or not isinstance(content.get("status"), str):
        return False
    spec = content.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("config"), dict):
        return False
    tables = [*spec["config"].values(), *(content[key] for key in _TABLES if content.get(key) is not None)]
    if not all(isinstance(table, dict) for table in tables):
        return False
    fingerprints = (content.get("dataset") or {}).get("fingerprints", {})
    start = content.get("init")
    return (
        isinstance(fingerprints, dict)
        and isinstance(content.get("error"), str | None)
        and (start is None or ({"method", "seed"} <= start.keys() and isinstance(start.get("config"), dict)))
        and (content["status"] != "finished" or isinstance(content.get("metrics"), dict))
    )


def difference(run: PlannedRun, content: Mapping[str, Any]) -> str | None:
    """In what a record is not of this run, or not on its data; None: it is."""
    adjustment = content.get("adjustment")
    if run.kind == "adjust":
        assert run.needs is not None
        return _other_adjustment(run, adjustment) or difference(run.needs, {**content, "adjustment": None})
    if adjustment is not None:
        return "popularity was taken out of its scores"
    spec = content["spec"]
    for key, planned in (("method", run.method), ("protocol", run.protocol), ("seed", run.seed)):
        if spec.get(key) != planned:
            return f"its {key} is {value_text(spec.get(key))}, in the plan it is {value_text(planned)}"
    found = other_settings(run, spec["config"]) or _other_start(run, content.get("init"))
    there = (content.get("hardware") or {}).get("device", run.device)
    if found is None and run.device not in ("auto", there):
        found = f"it ran on {there}, not on {run.device}"
    return found or _other_data(run, (content.get("dataset") or {}).get("fingerprints", {}))


def specification(run: PlannedRun) -> ExperimentSpec:
    """Of a training, as the plan says it; what does not fit the options of its method is an error."""
    return _specified(run.method, run.protocol, run.presets, run.settings)


def adjustment_of(run: PlannedRun) -> tuple[str, float]:
    """How popularity is taken out of what a run needs, and the share of recall to keep, as the plan says it."""
    wanted = dict(zip(run.options[::2], run.options[1::2], strict=True))
    form = choice("form", wanted.get("--form", FORMS[0]), OF_SCORES)
    return form, parsed_share("keep", wanted["--keep"]) if "--keep" in wanted else KEEP


@cache
def _specified(method: str, protocol: str, presets: tuple[str, ...], settings: tuple[str, ...]) -> ExperimentSpec:
    from caged.runs.spec import resolve  # with torch

    return resolve("", method, protocol=protocol, presets=presets, overrides=settings)


def other_settings(run: PlannedRun, recorded_config: Mapping[str, Mapping[str, Any]]) -> str | None:
    """A record from before there was an option ran with what is its default today."""
    expected, defaults = _plain(specification(run)), _plain(_specified(run.method, "honest", (), ()))
    for section, values in expected.items():
        there = {**defaults[section], **recorded_config.get(section, {})}
        for key, value in values.items():
            if there[key] != value:
                return f"{section}.{key} is {value_text(there[key])} in the record, {value_text(value)} in the plan"
    return None


def _plain(spec: ExperimentSpec) -> dict[str, dict[str, Any]]:
    """As JSON has it."""
    config: dict[str, dict[str, Any]] = spec.to_json()["config"]
    return config


def _other_start(run: PlannedRun, init: Mapping[str, Any] | None) -> str | None:
    if run.needs is None:
        return None if init is None else f"it starts from another run, {init.get('run')}"
    if init is None:
        return f"it does not start from a run of {run.needs.method}"
    if (init["method"], init["seed"]) != (run.needs.method, run.needs.seed):
        return f"it starts from {init['method']} with seed {init['seed']}"
    return other_settings(run.needs, init.get("config", {}))


def _other_adjustment(run: PlannedRun, adjustment: Mapping[str, Any] | None) -> str | None:
    if adjustment is None:
        return "its scores are as they were trained"
    form, keep = adjustment_of(run)
    if adjustment.get("form") != form:
        return f"its form is {adjustment.get('form')}, in the plan it is {form}"
    if adjustment.get("keep", keep) != keep:
        return f"it keeps {adjustment['keep']:g} of the recall, in the plan it is {keep:g}"
    return None


def _other_data(run: PlannedRun, fingerprints: Mapping[str, str]) -> str | None:
    """Of a known dataset: the test part as released, and train where no validation was carved from it."""
    known = DATASETS.get(run.data)
    if known is None:
        return None
    carved = "valid" in fingerprints and "valid" not in known.fingerprints
    for part, fingerprint in known.fingerprints.items():
        if part in fingerprints and fingerprints[part] != fingerprint and not (carved and part == "train"):
            return f"its {part} part is not that of {run.data}"
    return None


def market_file(root: Path, run: PlannedRun) -> Path:
    """Beside the records of a market: the parameters that it was simulated with."""
    return root / run.source / MARKET


def market_parameters(run: PlannedRun) -> dict[str, Any]:
    """All of them, as JSON has them."""
    parameters: dict[str, Any] = json_ready(vars(build(MarketConfig, dict(run.market or ()), "simulate")))
    return parameters


def other_market(run: PlannedRun, root: Path) -> str | None:
    """Why the records below `root` are not known to be on the market of the plan."""
    if run.market is None:
        return None
    path = market_file(root, run)
    if not path.is_file():
        return f"{path}, which says on what market it was made, is missing; restore it, or move the records away"
    try:
        said = read_json(path)
    except RunError as error:
        return str(error)
    if isinstance(said, dict) and said.get("parameters") == market_parameters(run):
        return None
    return f"{path} says that it was made on a market of other parameters; move all records of it away"


def at_hand() -> Look:
    """Compares records on logs of one's own with the logs, where these are here. Each is read once."""
    fingerprints: dict[tuple[Any, ...], str | None] = {}

    def look(run: PlannedRun, content: Mapping[str, Any]) -> str | None:
        run = run.training
        if run.market is not None or run.data in DATASETS or not Path(run.data).exists():
            return None
        spec = replace(specification(run), source=run.data)
        key = (run.data, run.protocol, spec.data)
        if key not in fingerprints:
            fingerprints[key] = _split_fingerprint(spec)
        if fingerprints[key] in (None, (content.get("dataset") or {}).get("split_fingerprint")):
            return None
        return f"{run.data} holds other data than it was made with"

    return look


def _split_fingerprint(spec: ExperimentSpec) -> str | None:
    """None where it cannot be read: training will say why."""
    from caged.runs.loading import load_data  # with torch

    try:
        return load_data(spec).facts["split_fingerprint"]
    except CagedError:
        return None


def _on_one_split(found: dict[PlannedRun, Recorded]) -> dict[PlannedRun, Recorded]:
    """Runs on one dataset under one protocol have one split; a record on another one than most is not theirs."""
    splits: dict[tuple[str, ...], Counter[str]] = {}
    for run, one in found.items():
        if one.finished:
            splits.setdefault(_split_of(run), Counter())[_fingerprint(one)] += 1
    usual = {key: counted.most_common(1)[0][0] for key, counted in splits.items()}
    return {
        run: replace(one, state="other", reason="it is on another split than the other records")
        if one.finished and _fingerprint(one) != usual[_split_of(run)]
        else one
        for run, one in found.items()
    }


def _split_of(run: PlannedRun) -> tuple[str, ...]:
    run = run.training
    return (run.data, run.protocol, *(text for text in run.settings if text.startswith("data.")))


def _fingerprint(one: Recorded) -> str:
    return str(((one.content or {}).get("dataset") or {}).get("split_fingerprint"))
