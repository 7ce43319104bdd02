"""The public classes of the baselines: fit, recommend, save, load, in the identifiers of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import caged
from tests.conftest import Pair

TINY = {"embedding_size": 4, "epochs": 2, "batch_size": 128}
BASELINES: dict[str, tuple[str, dict[str, Any]]] = {
    "AdjNorm": ("adjnorm", {"r": 0.25, **TINY}),
    "Reg": ("reg", {"reg_weight": 0.5, **TINY}),
    "IPS": ("ips", {"eta": 0.5, **TINY}),
    "MACR": ("macr", {"c_candidates": (0.0, 1.0), **TINY}),
    "LightGCNBCE": ("lightgcn_bce", TINY),
    "AdvDrop": ("advdrop", {"interval": 2, "adv_steps": 3, **TINY}),
    "APDA": ("apda", {"rho": 0.2, "dropout": "edge", **TINY}),
    "IPSAggregation": ("ips_aggregation", {"learned": True, **TINY}),
    "ItemKNN": ("itemknn", {"neighbours": 5, "weighting": "bm25"}),
    "EASE": ("ease", {"ridge": 10.0}),
}


@pytest.mark.parametrize("name", BASELINES)
def test_fit_recommend_save_load(name: str, pairs: list[Pair], tmp_path: Path) -> None:
    method, options = BASELINES[name]
    data = caged.Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs])
    split = caged.split(data, seed=1)
    model = getattr(caged, name)(**options, device="cpu").fit(split.train, valid=split.valid)
    assert model.name == method
    table = model.recommend(["u03", "u07"], k=5)
    assert table["rank"].to_pylist() == [1, 2, 3, 4, 5] * 2
    again = caged.load(model.save(tmp_path / "model"), device="cpu")
    assert again.recommend(["u03", "u07"], k=5).equals(table)
    assert again.config == model.config
