"""Judge runs by both halves of the people to whom chance showed items: one half to choose by, the other to report.

    python -m tools.shown_halves runs/kuairand-* -o results/kuairand/halves.json

The epoch of each run was chosen by recall on validation; the halves never met in one figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from caged.errors import RunError
from caged.files import write_json
from caged.runs.artefact import load_artefact
from caged.runs.environment import resolve_device
from caged.runs.execute import evaluate_part
from caged.runs.folder import RunFolder
from caged.runs.results import shareable

HALVES = ("first", "second", "all")
METRICS = ("shown_auc", "shown_auc/popular", "shown_auc/niche", "shown_auc_within")


def judged(path: Path) -> dict[str, Any]:
    """One finished run: what it is, and what each half says about it."""
    folder = RunFolder.read(path)
    run, device = folder.run, resolve_device("auto")
    data = folder.load_data("the run")
    if data.split.test is None:
        raise RunError(f"{path} has no test part, so nothing that chance showed; give runs on a dataset that has one")
    scorer = load_artefact(path, device).scorer()
    halves = {}
    for half in HALVES:
        spec = replace(folder.spec, eval=replace(folder.spec.eval, shown_half=half))
        report = evaluate_part(scorer, data.split, data.split.test, spec, device).report
        halves[half] = {
            **{name: report.metrics[name] for name in METRICS},
            "users": report.users_per_metric["shown_auc"],
            "floors": report.floors,
        }
    return {
        "method": run.method_name,
        "settings": folder.spec.to_json()["config"]["method"],
        "seed": folder.spec.seed,
        "training": {key: (run.training or {}).get(key) for key in ("epochs", "best_epoch", "best_validation")},
        "halves": halves,
        "command": run.command,
        "versions": run.versions,
        "hardware": run.hardware,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="python -m tools.shown_halves"
    )
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    runs = [judged(path) for path in asked.runs]
    write_json(asked.out, shareable({"runs": runs}))
    for run in runs:
        print(run["method"], *(f"{half} {run['halves'][half]['shown_auc']:.4f}" for half in HALVES))


if __name__ == "__main__":
    main()
