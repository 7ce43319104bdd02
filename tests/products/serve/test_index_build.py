"""When an index is built, and that its recall is what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from benchmarks.made_up_artefact import write_made_up
from caged.errors import ConfigError
from caged.products.serve import Manifest, ServedModel, index_build
from caged.products.serve.index_build import add_index, list_count, recall, wants_index
from tests.cli.invoke import caged, refused, train
from tests.products.serve.exported import exported

pytest.importorskip("faiss")


def test_only_large_catalogues_of_vectors_want_one(tmp_path: Path) -> None:
    manifest = write_made_up(tmp_path / "small", items=50, users=3, width=4)
    assert not wants_index(manifest)
    large = replace(manifest, items=200_001)
    assert wants_index(large)
    assert not wants_index(replace(large, kind="item_weights"))
    assert not wants_index(replace(large, users=0))  # there is nobody to measure it on


def test_lists_grow_with_the_root() -> None:
    assert [list_count(items) for items in (0, 1, 300, 200_000, 1_000_000)] == [1, 1, 16, 512, 1024]


def test_recall_is_the_share_that_was_found() -> None:
    assert recall([np.array([1, 2]), np.array([3])], [np.array([2, 9]), np.array([3])]) == pytest.approx(2 / 3)
    assert recall([], []) == 0


def test_an_export_of_a_large_catalogue_has_an_index(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_build, "LEAST_ITEMS", 30)  # the run has 40
    engine = exported(finished_run, tmp_path / "with", with_price=False)
    stated = engine.model.manifest.index
    assert stated is not None
    assert Manifest.read(tmp_path / "with").index == stated
    assert {"index.faiss", "index_head.npy"} <= set(engine.model.manifest.files)
    assert engine.search.startswith("index")
    assert exported(finished_run, tmp_path / "without", with_price=False, index="none").search == "exact search"
    refused(caged("export", "artefact", finished_run, "-o", tmp_path / "x", "--index", "best"), "allowed: auto, none")
    said = caged("export", "artefact", finished_run, "-o", tmp_path / "told", "--no-price").err
    assert "index: 1.000 of the exact top 20" in said
    with mock.patch("caged.products.serve.export.library", return_value=None):
        lacking = caged("export", "artefact", finished_run, "-o", tmp_path / "lacking", "--no-price")
    assert "pip install 'caged-rec[serve-index]'" in lacking.err
    assert ServedModel.load(tmp_path / "lacking").manifest.index is None


def test_what_cannot_have_one_is_a_sentence(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", method="itemknn")
    exported(tmp_path / "run", tmp_path / "artefact", with_price=False)
    with pytest.raises(ConfigError, match="itemknn has no vectors"):
        add_index(tmp_path / "artefact")
    with (
        mock.patch("caged.products.serve.index_build.library", return_value=None),
        pytest.raises(ConfigError, match="pip install"),
    ):
        add_index(tmp_path / "artefact")
