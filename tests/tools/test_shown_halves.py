from __future__ import annotations

import json
from pathlib import Path

from caged.data.market import MarketConfig, simulate
from tests.cli.invoke import caged, train
from tools.shown_halves import main

SMALL = MarketConfig(
    user_count=60, item_count=50, rounds=10, test_rounds=4, slots=6, rank=8, shortlist=20, test_share_explore=0.7
)


def test_both_halves_say_what_evaluate_says(tmp_path: Path) -> None:
    simulate(SMALL).write(tmp_path / "market")
    assert train(tmp_path / "market", tmp_path / "run", method="ease").code == 0
    main([str(tmp_path / "run"), "-o", str(tmp_path / "halves.json")])
    [run] = json.loads((tmp_path / "halves.json").read_text())["runs"]
    for half in ("first", "second", "all"):
        said = json.loads(caged("evaluate", tmp_path / "run", "--shown-half", half, "--json").out)
        assert run["halves"][half]["shown_auc"] == said["metrics"]["shown_auc"]
    assert run["method"] == "ease"
    assert run["halves"]["first"]["users"] + run["halves"]["second"]["users"] == run["halves"]["all"]["users"]
