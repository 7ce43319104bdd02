"""`docs/caged.md` shows every recorded run of LightGCN and CAGED, and its tables are those of the records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import caged_doc
from tools.caged_doc import read_runs, updated

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "caged.md"
COMMAND = "python -m tools.caged_doc docs/caged.md"
MARKED = "before\n<!-- runs: shop honest -->\nold\n<!-- end -->\nafter\n"
SETTINGS = {
    "method": {"embedding_size": 64, "layers": 2, "l2": 1e-4},
    "train": {"learning_rate": 1e-3, "batch_size": 2048, "epochs": 10, "patience": 5, "sampler": "interaction"},
}


def record(root: Path, variant: str, seed: int, recall: float | None, **changes: object) -> None:
    folder = root / "shop" / "honest" / variant
    folder.mkdir(parents=True, exist_ok=True)
    metrics = None if recall is None else {"recall@20": recall, "ndcg@20": recall / 2, "arp@20": 195.46, "gini@20": 0.5}
    content = {"status": "finished", "spec": {"seed": seed, "config": SETTINGS}, "metrics": metrics, **changes}
    (folder / f"seed{seed}.json").write_text(json.dumps(content))


def table(root: Path) -> list[list[str]]:
    """The cells of the generated table, its header first."""
    lines = [line for line in updated(MARKED, root).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in [lines[0], *lines[2:]]]


def test_the_document_is_up_to_date() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    if not (ROOT / "results").is_dir():
        pytest.skip("the recorded results are not part of this copy")
    assert updated(text, ROOT / "results") == text, f"run {COMMAND}"
    assert COMMAND in text
    for dataset in ("epinions-caged", "ml-1m-caged"):
        for protocol in ("honest", "paper"):
            assert f"<!-- runs: {dataset} {protocol} " in text


def test_a_row_per_variant_with_means_ranges_and_the_difference_of_the_same_seeds(tmp_path: Path) -> None:
    for seed, recall in ((1, 0.10), (2, 0.20)):
        record(tmp_path, "lightgcn", seed, recall)
    for seed, recall in ((1, 0.12), (2, 0.21), (3, 0.90)):
        record(tmp_path, "caged-code", seed, recall)
    header, lightgcn, caged = table(tmp_path)
    assert header == ["variant", "seeds", "Recall@20", "NDCG@20", "Recall against LightGCN", "ARP", "Gini", "status"]
    assert lightgcn[:2] == ["`lightgcn`", "1, 2"]
    assert lightgcn[2:4] == ["0.1500 (0.1000 to 0.2000)", "0.0750 (0.0500 to 0.1000)"]
    assert lightgcn[4:] == ["-", "195.5", "0.5000", "finished"]
    assert caged[1:5] == [
        "1, 2, 3",
        "0.4100 (0.1200 to 0.9000)",
        "0.2050 (0.0600 to 0.4500)",
        "+0.0150 (+10.0%, seed 1, 2)",
    ]


def test_three_seeds_give_an_interval(tmp_path: Path) -> None:
    for seed, gain in ((1, 0.01), (2, 0.02), (3, 0.03)):
        record(tmp_path, "lightgcn", seed, 0.10)
        record(tmp_path, "caged", seed, 0.10 + gain)
    # standard error 0.01 / sqrt(3), t(2 degrees) = 4.302653: half a width of 0.024841
    assert table(tmp_path)[2][4] == "+0.0200 [-0.0048, +0.0448] (+20.0%)"


def test_lightgcn_that_was_trained_in_another_way_is_no_measure(tmp_path: Path) -> None:
    record(tmp_path, "lightgcn", 1, 0.10)
    other = {**SETTINGS, "train": {**SETTINGS["train"], "epochs": 99}}
    record(tmp_path, "caged", 1, 0.12, spec={"seed": 1, "config": other})
    assert table(tmp_path)[2][4] == "-"


def test_failed_and_lost_runs_are_listed(tmp_path: Path) -> None:
    record(tmp_path, "caged-no_momentum", 1, None, status="failed", error="CAGED diverged: the embeddings | are gone")
    record(tmp_path, "caged-code", 1, 0.3)
    record(tmp_path, "caged-code", 2, None, status="interrupted")
    text = updated(MARKED, tmp_path)
    rows = {cells[0]: cells for cells in table(tmp_path)[1:]}
    assert rows["`caged-no_momentum`"][1:4] == ["-", "-", "-"]
    assert rows["`caged-no_momentum`"][-1] == "failed (seed 1)"
    assert rows["`caged-code`"][-1] == "finished (seed 1); interrupted (seed 2)"
    assert "- `caged-no_momentum`, seed 1: CAGED diverged: the embeddings | are gone\n" in text


def test_other_methods_are_not_in_it_and_none_is_no_error(tmp_path: Path) -> None:
    record(tmp_path, "lightgcn_bce", 1, 0.1)
    record(tmp_path, "ips", 1, 0.1)
    assert updated(MARKED, tmp_path) == MARKED.replace("old", "No runs recorded yet.")


def test_the_command_rewrites_the_file(tmp_path: Path) -> None:
    record(tmp_path, "caged", 1, 0.5)
    path = tmp_path / "caged.md"
    path.write_text(MARKED)
    caged_doc.main([str(path), "--results", str(tmp_path)])
    assert path.read_text() == updated(MARKED, tmp_path)
    assert path.read_text().startswith("before\n<!-- runs: shop honest -->\n| variant |")
    assert path.read_text().endswith("<!-- end -->\nafter\n")


def test_variants_of_a_pattern_are_left_out(tmp_path: Path) -> None:
    for variant in ("lightgcn", "lightgcn-epochs2-cpu"):
        record(tmp_path, variant, 1, 0.10)
    folder = tmp_path / "shop" / "honest"
    assert len(read_runs(folder)) == 2
    assert [run.variant for run in read_runs(folder, ["*-cpu"])] == ["lightgcn"]
