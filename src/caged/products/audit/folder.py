"""The folder of an audit: the same kind as that of a run, without the training parts, so that `compare` reads both.

audit.json         name, command, cut-offs, fingerprints of the parts, notes, versions
metrics.json       protocol, metrics, users behind each, intervals, counts, evidence, name, fingerprints
per_user.parquet   user_id, user_group, chosen groups of users, a column per metric of users; absent for very many users
sums.parquet       user_id and what each user adds to the pooled metrics; absent likewise
exposure.parquet   item_id, degree, popular, bucket, relevant, and how many lists show the item (shown@k)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from caged.errors import RunError
from caged.evaluation.basis import Basis
from caged.evaluation.bootstrap import Interval
from caged.evaluation.stored import write_user_table
from caged.files import new_folder, read_sealed_json, write_json, write_sealed_json
from caged.products.audit.result import AuditResult, Exposure
from caged.runs.folder import METRICS, PER_USER, SUMS, RunFolder
from caged.runs.versions import versions

FORMAT = 1  # of audit.json
AUDIT, EXPOSURE = "audit.json", "exposure.parquet"  # the other names are those of a run folder


def write_audit(result: AuditResult, folder: Path) -> None:
    """All files or no folder; one that holds anything already is refused."""
    tables = {PER_USER: result.per_user, SUMS: result.sums, EXPOSURE: exposure_table(result.exposure)}
    with new_folder(folder) as temporary:
        for name, table in tables.items():
            if table is not None:
                write_user_table(table, temporary / name)
        write_sealed_json(temporary / METRICS, metrics_json(result))
        write_json(temporary / AUDIT, _audit_json(result))


def metrics_json(result: AuditResult) -> dict[str, Any]:
    """The content of `metrics.json`; undefined values become null when it is written."""
    return {
        "protocol": result.protocol,
        "metrics": result.metrics,
        "users": result.users,
        "intervals": {key: interval._asdict() for key, interval in result.intervals.items()},
        **({"intervals_withheld": result.withheld} if result.withheld else {}),
        "counts": result.counts,
        "evidence": result.evidence,
        "name": result.name,
        "fingerprints": result.fingerprints,
        **({} if result.basis is None else {"basis": result.basis.to_json()}),
        **({"problems": list(result.problems)} if result.problems else {}),
        **({"shown_floors": result.floors} if result.floors else {}),
        **({"extra_tests": {name: other.metrics for name, other in result.further.items()}} if result.further else {}),
    }


def _audit_json(result: AuditResult) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": result.name,
        "command": result.command,
        "ks": list(result.ks),
        "evidence": result.evidence,
        "fingerprints": result.fingerprints,
        "notes": list(result.notes),
        "versions": versions(),
        "extra_tests": {
            name: {"evidence": other.evidence, "fingerprints": other.fingerprints}
            for name, other in result.further.items()
        },
    }


def exposure_table(exposure: Exposure) -> pa.Table:
    return pa.table(
        {
            "item_id": exposure.item_ids.values,
            "degree": exposure.degrees,
            "popular": exposure.popular,
            "bucket": exposure.bucket,
            **({} if exposure.relevant is None else {"relevant": exposure.relevant}),
            **{f"shown@{k}": shown for k, shown in exposure.shown.items()},
        }
    )


@dataclass(frozen=True, eq=False)
class StoredAudit:
    """What a folder says about an audit, or about the evaluation of a run."""

    folder: Path
    name: str
    protocol: str | None
    evidence: str | None
    metrics: Mapping[str, float]  # NaN where undefined
    users: Mapping[str, int]
    intervals: Mapping[str, Interval]  # none for a run
    counts: Mapping[str, int]
    fingerprints: Mapping[str, str]  # of train, valid, test
    basis: Basis | None = None  # None in folders of earlier versions
    problems: tuple[str, ...] = ()
    floors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def read_audit(folder: Path, run: RunFolder | None = None) -> StoredAudit:
    """An audit, or a finished run, whichever lies in `folder`; `run` is the latter where it was read already."""
    if not (folder / METRICS).is_file():
        raise RunError(
            f"{folder} holds no {METRICS}; give a folder that caged audit -o wrote, or a finished run of caged train"
        )
    stored = read_sealed_json(folder / METRICS)
    if not isinstance(stored, dict) or not isinstance(stored.get("metrics"), dict):
        raise RunError(f"{folder / METRICS} holds no metrics; restore the file, or audit again")
    name, fingerprints = stored.get("name"), stored.get("fingerprints")
    if fingerprints is None:
        said = (run or RunFolder.read(folder)).run
        name, fingerprints = said.spec["method"], said.dataset["fingerprints"]
    try:
        return StoredAudit(
            folder=folder,
            name=str(name),
            protocol=stored["protocol"],
            evidence=stored.get("evidence"),
            metrics=_numbers(stored["metrics"]),
            users=stored["users"],
            intervals={key: Interval(**interval) for key, interval in stored.get("intervals", {}).items()},
            counts=stored["counts"],
            fingerprints=fingerprints,
            basis=Basis.from_json(stored.get("basis")),
            problems=tuple(stored.get("problems", ())),
            floors={name: _numbers(floor) for name, floor in stored.get("shown_floors", {}).items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder / METRICS} is incomplete ({error}); restore the file, or audit again") from error


def _numbers(stored: Mapping[str, float | None]) -> dict[str, float]:
    """Undefined values are null in JSON."""
    return {key: float("nan") if value is None else float(value) for key, value in stored.items()}
