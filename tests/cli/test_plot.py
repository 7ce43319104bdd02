"""`caged train --save-weights` and `caged plot iip`."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import caged as library
from caged.graph import BipartiteGraph, degree_weights
from caged.page.iip import BINS, densities
from caged.runs.execute import resume, start
from caged.runs.folder import RunFolder
from caged.runs.saved_weights import load_saved_weights
from caged.runs.spec import resolve
from caged.training import Interrupted
from tests.cli.invoke import caged, contents, refused_without_a_trace, train

OPTIONS = ("train.epochs=6", "train.patience=none", "train.checkpoint_seconds=0", "method.embedding_size=4")
CHOSEN = (
    *OPTIONS,
    "method.eps=0.2",
    "method.without=update_condition",
    "train.learning_rate=0.05",
    "train.batch_size=64",
)
CAGED = tuple(part for value in CHOSEN for part in ("--set", value))


@pytest.fixture(scope="module")
def run(log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plotted") / "run"
    train(log_csv, folder, *CAGED, "--save-weights", method="caged")
    return folder


def test_weights_before_during_and_after(run: Path) -> None:
    files = {path.stem for path in (run / "weights").glob("*.safetensors")}
    assert files == {"before", "after", "update-1", "update-2", "update-4"}
    fitted = library.load(run, device="cpu").artefact
    graph = BipartiteGraph.from_interactions(fitted.train)
    before, after = (load_file(run / "weights" / f"{name}.safetensors") for name in ("before", "after"))
    assert torch.equal(before["to_user"], degree_weights(graph).to_user)
    assert torch.equal(after["to_user"], fitted.method.weights.to_user)
    assert torch.equal(after["to_item"], fitted.method.weights.to_item)
    assert after["updates"].item() == fitted.method.updates
    during = load_file(run / "weights" / "update-2.safetensors")
    assert not torch.equal(during["to_user"], before["to_user"])


def test_saving_weights_changes_nothing_else(run: Path, log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", *CAGED, method="caged")
    assert not (tmp_path / "run" / "weights").exists()
    assert "save_weights" not in json.loads((tmp_path / "run" / "run.json").read_text())
    for name in ("metrics.json", "checkpoint/model.safetensors"):
        assert (run / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def test_a_resumed_run_goes_on_saving(run: Path, log_csv: Path, tmp_path: Path) -> None:
    spec = resolve(str(log_csv), "caged", overrides=CHOSEN, device="cpu", threads=1)
    folder = tmp_path / "pieces"
    with pytest.raises(Interrupted):
        start(spec, folder, save_weights=True, stop_requested=lambda: True)
    for _ in range(5):
        with pytest.raises(Interrupted):
            resume(RunFolder.read(folder), stop_requested=lambda: True)
    resume(RunFolder.read(folder))
    assert contents(folder / "weights") == contents(run / "weights")


def test_the_figure(run: Path, tmp_path: Path) -> None:
    outcome = caged("plot", "iip", run, "-o", tmp_path / "iip.svg", "--json")
    assert outcome.code == 0, outcome.err
    assert str(tmp_path / "iip.svg") in outcome.err
    root = ET.fromstring((tmp_path / "iip.svg").read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = " ".join(root.itertext())
    assert "inverse item popularity" in words
    assert "before" in words
    found = json.loads(outcome.out)
    saved = load_saved_weights(run)
    assert [one["name"] for one in found["densities"]] == [one.name for one in saved]
    assert [one["updates"] for one in found["densities"]] == [one.updates for one in saved]
    assert len(found["centres"]) == BINS
    fitted = library.load(run, device="cpu").artefact
    degrees = fitted.train.item_degrees[fitted.train.items]
    assert found["densities"][0]["mean"] == pytest.approx((1 / np.sqrt(degrees)).mean(), rel=1e-6)


def test_the_figure_has_a_title_and_round_ticks(run: Path, tmp_path: Path) -> None:
    assert caged("plot", "iip", run, "-o", tmp_path / "iip.svg").code == 0
    words = list(ET.fromstring((tmp_path / "iip.svg").read_text(encoding="utf-8")).itertext())
    assert f"Inverse item popularity during training: {run.name}" in words
    ticks = [float(text) for text in words if re.fullmatch(r"\d+(\.\d+)?", text)]
    across = ticks.index(0.0, 1)  # the numbers of the vertical axis come first
    for axis in (ticks[:across], ticks[across:]):
        assert len(axis) >= 3
        steps = np.diff(axis)
        assert steps == pytest.approx(np.full(len(steps), steps[0]))
        assert float(f"{steps[0]:e}".partition("e")[0]) in (1.0, 2.0, 2.5, 5.0)


def test_the_figure_as_png_and_pdf(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    for kind, start_of in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        outcome = caged("plot", "iip", run, "-o", tmp_path / f"iip.{kind}")
        assert outcome.code == 0, outcome.err
        assert (tmp_path / f"iip.{kind}").read_bytes().startswith(start_of)


def test_the_figure_goes_into_the_run_folder(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    assert caged("plot", "iip", copy, "--rescale").code == 0
    assert "rescaled to the mean before" in (copy / "iip.svg").read_text()


def test_a_figure_of_no_run(tmp_path: Path) -> None:
    refused_without_a_trace(tmp_path, ["plot", "iip", "nope"], "nope is not a run folder")


def test_densities_are_densities() -> None:
    values = np.random.default_rng(0).random(5000)
    iip = densities([("before", 0, values), ("after", 3, 2 * values)])
    width = iip.centres[1] - iip.centres[0]
    assert sum(iip.densities[0].values) * width == pytest.approx(1)
    assert sum(iip.densities[1].values) * width == pytest.approx(0.99, abs=0.01)
    assert iip.densities[1].mean == pytest.approx(2 * values.mean())
    rescaled = densities([("before", 0, values), ("after", 3, 2 * values)], rescaled=True)
    assert rescaled.densities[0].values == rescaled.densities[1].values


def test_during_is_the_update_nearest_to_the_middle(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    for name, updates in {"before": 0, "update-1": 1, "update-4": 4, "update-16": 16, "after": 11}.items():
        tensors = {"to_user": torch.ones(3), "to_item": torch.ones(3), "updates": torch.tensor(updates)}
        save_file(tensors, tmp_path / "weights" / f"{name}.safetensors")
    assert [(one.name, one.updates) for one in load_saved_weights(tmp_path)] == [
        ("before", 0),
        ("during", 4),
        ("after", 11),
    ]


def test_bad_input(run: Path, finished_run: Path, log_csv: Path, tmp_path: Path) -> None:
    assert "a figure ends in .svg, .png, .pdf" in caged("plot", "iip", run, "-o", tmp_path / "iip.jpeg").error
    assert "train with --save-weights" in caged("plot", "iip", finished_run).error
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    file = copy / "weights" / "after.safetensors"
    save_file({"to_user": torch.ones(3), "to_item": torch.ones(3), "updates": torch.tensor(4)}, file)
    assert "do not match its" in caged("plot", "iip", copy).error
    save_file({"to_user": torch.ones(3), "updates": torch.tensor(4)}, file)
    assert "lacks 'to_item'" in caged("plot", "iip", copy).error
    out = tmp_path / "none"
    command = ("train", "--data", log_csv, "--method", "mostpop", "--out", out, "--save-weights")
    outcome = caged(*command)
    assert outcome.code == 2
    assert "method 'mostpop' changes none" in outcome.error
    assert "caged" in outcome.error
    assert not out.exists()
