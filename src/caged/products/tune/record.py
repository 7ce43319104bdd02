"""The record of a search that goes under version control, and the preset that comes from it.

    results/tunes/<dataset>[-<variant>].json

It holds what was asked for, where it ran, every trial with its setting and its main metrics on validation, what was
chosen, and what the tests said. Paths of the machine are cut to their last part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from caged.errors import ConfigError, RunError
from caged.evaluation.metrics import MetricKey
from caged.files import make_parent, read_json, write_json
from caged.products.tune.answer import Answer, answer_json
from caged.products.tune.choice import Chosen
from caged.products.tune.presets import chosen_options, origin, toml_text
from caged.runs.results import refuse_unwritable, shareable

FOLDER, FORMAT = "tunes", 1
# Of each training, at the cut-off of the objective, beside what the answer shows.
_MAIN = ("recall", "ndcg", "recall/niche", "ndcg/niche", "tail_share", "gini", "coverage", "arp")


def check_record(root: Path | None, variant: str | None) -> None:
    """Before the work: a record could be written there. Nothing is created."""
    if variant is not None and not re.fullmatch(r"[A-Za-z0-9._-]+", variant):
        raise ConfigError(f"variant '{variant}' must consist of letters, digits, '.', '_' and '-'; choose another name")
    if root is None:
        if variant is not None:
            raise ConfigError(f"--variant {variant} is the name of a record; say where to write it with --record")
        return
    refuse_unwritable(root / FOLDER)


def record_path(root: Path, dataset: str, variant: str | None = None) -> Path:
    return root / FOLDER / (f"{dataset}-{variant}.json" if variant else f"{dataset}.json")


def write_record(answer: Answer, root: Path, variant: str | None = None) -> Path:
    path = record_path(root, answer.dataset, variant)
    make_parent(path)
    write_json(path, record_json(answer))
    return path


def record_json(answer: Answer) -> dict[str, Any]:
    """What `--json` says, with the main metrics only, and the chosen options as a preset has them."""
    told = answer_json(answer)
    keys = _recorded_keys(answer)
    calls = [shareable(dict(call)) for call in answer.calls]
    left_out = ("folder", "methods", "calls", "settings")
    return {
        "format": FORMAT,
        "command": calls[0]["command"] if calls else "",
        "seed": answer.settings.seed,
        "fingerprints": dict(answer.data),
        **{key: value for key, value in told.items() if key not in left_out},
        "methods": {
            chosen.method: _method_json(answer, chosen, told["methods"][chosen.method], keys)
            for chosen in answer.choice.methods
        },
        "settings": shareable(told["settings"]),
        "calls": calls,
    }


def _recorded_keys(answer: Answer) -> list[str]:
    axes = answer.choice.trade_off
    k = MetricKey.parse(axes[0] if axes else answer.settings.objective.key).k
    main = [f"{name}@{k}" + (f"/{group}" if group else "") for name, _, group in (one.partition("/") for one in _MAIN)]
    return list(dict.fromkeys([*answer.choice.keys, *main]))


def _method_json(answer: Answer, chosen: Chosen, told: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    counted = ("trials", "failed", "pruned", "epochs_saved", "exhausted", "epochs", "seconds", "feasible")
    counts = {key: told[key] for key in counted}
    spec = None if chosen.trial is None else answer.settings.spec(chosen.method, chosen.trial.values)
    return {
        **counts,
        "chosen": None if chosen.trial is None else chosen.trial.number,
        "options": None if spec is None else chosen_options(spec),
        "record": [_shortened(trial, keys) for trial in told["record"]],
        "test": [_shortened(one, keys) for one in told["test"]],
        "default_test": [_shortened(one, keys) for one in told["default_test"]],
    }


def _shortened(told: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    metrics = told.get("metrics")
    short = {
        key: value for key, value in told.items() if key not in ("method", "folder", "metrics") and value is not None
    }
    return short if metrics is None else {**short, "metrics": {key: metrics[key] for key in keys if key in metrics}}


# ---------------------------------------------------------------- and back


def read_record(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise RunError(f"{path} does not exist; give a file that caged tune --record wrote")
    found = read_json(path)
    if not isinstance(found, dict) or not {"dataset", "methods", "command"} <= found.keys():
        raise RunError(f"{path} is not the record of a search; give a file that caged tune --record wrote")
    if found.get("format") != FORMAT:
        raise RunError(f"{path} has another format than {FORMAT}; use the version that wrote it")
    return found


def preset_of_record(record: Mapping[str, Any], name: str) -> str:
    """`tuned_<dataset>`: what was chosen for each method, with its training; `name` is where the record is."""
    if not record.get("tested"):
        raise RunError(
            f"the search recorded in {name} is not finished, so its choice may change; end it with caged tune --resume"
        )
    head = [
        record["command"],
        f"Chosen on the validation part of {record['dataset']}; the record of the search is {shareable(name)}.",
    ]
    chosen = {name: found["options"] for name, found in record["methods"].items() if found["options"] is not None}
    tables = origin(record["dataset"], list(chosen))
    for method, options in chosen.items():
        tables[f"methods.{method}"] = options["method"]
        tables[f"methods.{method}.train"] = options["train"]
    return toml_text(head, tables)
