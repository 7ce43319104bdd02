"""Plans as text, for tests."""

from __future__ import annotations

from pathlib import Path

from caged.products.study import Plan, read_plan

SMALL = """
title = "small"

[datasets.first]
data = "gowalla"
presets = ["epinions"]
set = ["train.epochs=3"]
on.paper.set = ["train.epochs=4"]

[datasets.second]
data = "ml-100k"

[protocols.paper]
set = ["train.patience=50"]

[rows.lightgcn]
title = "LightGCN"
method = "lightgcn"

[rows.wide]
method = "lightgcn"
variant = "wide"
set = ["method.embedding_size=32"]
on.second.set = ["method.embedding_size=48"]

[rows.galore]
method = "galore"
init = "lightgcn"

[rows.scale]
method = "lightgcn"
variant = "scale"
vary = { key = "method.layer_scale", values = [0.5, 2] }

[rows.adjusted]
adjust = "lightgcn"
keep = "99%"

[rows.ease]
method = "ease"
plain = true
device = "cpu"

[sections.main]
about = "The main table."

[[sections.main.grids]]
priority = 2
datasets = ["first", "second"]
protocols = ["honest"]
rows = ["lightgcn", "adjusted", "ease"]
seeds = [1, 2, 3]

[sections.further]

[[sections.further.grids]]
priority = 1
datasets = ["first"]
protocols = ["honest"]
rows = ["galore", "wide", "scale"]

[[sections.further.grids]]
priority = 3
datasets = ["first"]
protocols = ["paper", "honest"]
rows = ["lightgcn"]
"""


def plan_of(text: str, folder: Path) -> Plan:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)
