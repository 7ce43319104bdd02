"""`caged results`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.invoke import caged, contents, train


def test_records_move_between_machines(log_csv: Path, tmp_path: Path) -> None:
    for seed in ("1", "2"):
        train(log_csv, tmp_path / f"run{seed}", "--seed", seed, "--record", tmp_path / "results", method="mostpop")
    outcome = caged("results", "pack", "results", "-o", "moved.tar.gz", cwd=tmp_path)
    assert outcome == (0, "", "2 records packed into moved.tar.gz\n")
    outcome = caged("results", "unpack", "moved.tar.gz", "--into", "copy", cwd=tmp_path)
    assert outcome == (0, "", "2 records unpacked into copy\n")
    assert contents(tmp_path / "copy") == contents(tmp_path / "results")
    [changed, _] = sorted((tmp_path / "copy").rglob("*.json"))
    changed.write_text("{}")
    refused = caged("results", "unpack", "moved.tar.gz", "--into", "copy", cwd=tmp_path)
    assert refused.code == 2
    assert "--overwrite" in refused.error
    assert changed.read_text() == "{}"
    assert caged("results", "unpack", "moved.tar.gz", "--into", "copy", "--overwrite", cwd=tmp_path).code == 0
    assert contents(tmp_path / "copy") == contents(tmp_path / "results")
    assert caged("results", "pack", "results", cwd=tmp_path).code == 0
    assert (tmp_path / "results.tar.gz").read_bytes() == (tmp_path / "moved.tar.gz").read_bytes()
