"""Artefacts of tiny runs."""

from __future__ import annotations

from pathlib import Path

from caged.products.serve import Engine, ServedModel
from caged.products.serve.export import artefact_of_run


def exported(run: Path, out: Path, **options: object) -> Engine:
    artefact_of_run(run, out, device="cpu", **options)  # type: ignore[arg-type]
    return Engine(ServedModel.load(out))
