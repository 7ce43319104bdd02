"""The page of a run says how training went and what it was set to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from caged.page.html import Section
from caged.products.audit.run_sections import run_sections
from caged.runs.folder import RunFolder
from tests.products.compare.compared import write_run


def epoch(number: int, **changes: Any) -> str:
    line = {"stage": "train", "epoch": number, "loss": {"total": 1 / number}, "validation": {"recall@20": 0.1 * number}}
    return json.dumps({**line, **changes}) + "\n"


def write_trained(folder: Path, history: str, method: str = "lightgcn", **config: Any) -> Path:
    write_run(folder, method, config=config)
    run = json.loads((folder / "run.json").read_text())
    run["training"] = {"epochs": 3, "best_epoch": 2}
    run["spec"].update({"source": "log", "device": "cpu", "threads": None, "presets": ["movie"]})
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "history.jsonl").write_text(history)
    return folder


def sections(folder: Path, history: str, method: str = "lightgcn", **config: Any) -> list[Section]:
    return run_sections(RunFolder.read(write_trained(folder, history, method, **config)))


def test_the_learning_curve_has_every_epoch(tmp_path: Path) -> None:
    learning, settings = sections(tmp_path / "run", "".join(map(epoch, (1, 2, 3))), layers=2)
    assert learning.figure is not None
    assert [row[0] for row in learning.figure.table.rows] == ["1", "2", "3"]
    assert [row[2] for row in learning.figure.table.rows] == ["10.00%", "20.00%", "30.00%"]
    assert [str(panel.heading) for panel in learning.figure.panels] == [
        "recall@20 on the validation part",
        "Training loss",
    ]
    drawing = learning.figure.panels[0].draw(348)
    assert drawing.count('class="mark"') == 3
    assert "The model of epoch 2 was kept" in learning.paragraphs[0]
    assert settings.paragraphs == ["Seed 1, protocol honest, preset movie."]
    assert settings.table is not None
    assert ["method.layers", "2", "3"] in [list(row) for row in settings.table.rows]


def test_epochs_without_validation_and_a_history_that_cannot_be_read(tmp_path: Path) -> None:
    learning, _ = sections(tmp_path / "loss", epoch(1, validation=None) + epoch(2, validation=None))
    assert learning.figure is not None
    assert len(learning.figure.panels) == 1
    assert len(sections(tmp_path / "closed", "")) == 1
    assert len(sections(tmp_path / "torn", epoch(1) + epoch(2) + '{"loss": ')) == 1


def test_a_method_without_settings_and_one_that_nobody_knows(tmp_path: Path) -> None:
    (settings,) = sections(tmp_path / "plain", "", method="mostpop")
    assert settings.table is None
    (settings,) = sections(tmp_path / "foreign", "", method="not_installed", depth=4)
    assert settings.table is not None
    assert ["method.depth", "4", ""] in [list(row) for row in settings.table.rows]
