"""Artefacts on disk: what is written is mapped again, and damage is one sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from caged.errors import RunError
from caged.products.serve import MANIFEST, Ask, Engine, ServedModel
from caged.products.serve.model import Names
from tests.cli.invoke import caged
from tests.products.serve.exported import exported


@pytest.fixture(scope="module")
def unchanged(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unchanged") / "artefact"
    exported(finished_run, folder)
    return folder


@pytest.fixture
def artefact(unchanged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unchanged, tmp_path / "artefact"))


def test_the_manifest_says_where_it_comes_from_and_what_the_knob_costs(artefact: Path, finished_run: Path) -> None:
    manifest = ServedModel.load(artefact).manifest
    stored = json.loads((finished_run / "run.json").read_text())
    assert manifest.origin["fingerprints"] == stored["dataset"]["fingerprints"]
    assert (
        manifest.audit["metrics"]["recall@20"]
        == json.loads((finished_run / "metrics.json").read_text())["metrics"]["recall@20"]
    )
    assert [point["strength"] for point in manifest.price["curve"]["valid"]][:2] == [0.0, 0.01]


def test_a_flipped_byte_is_told_by_the_name_of_the_file(artefact: Path) -> None:
    for name in json.loads((artefact / MANIFEST).read_text())["files"]:
        path = artefact / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(RunError, match=f"{name} was changed"):
            ServedModel.load(artefact)
        path.write_bytes(whole)
    ServedModel.load(artefact)


def test_other_folders_are_refused(artefact: Path, finished_run: Path) -> None:
    with pytest.raises(RunError, match="is no artefact"):
        ServedModel.load(finished_run)
    manifest = json.loads((artefact / MANIFEST).read_text())
    (artefact / MANIFEST).write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(RunError, match="another format than 1"):
        ServedModel.load(artefact)
    (artefact / MANIFEST).write_text(json.dumps({key: value for key, value in manifest.items() if key != "width"}))
    with pytest.raises(RunError, match="lacks 'width'"):
        ServedModel.load(artefact)


def test_bfloat16_answers_nearly_the_same(finished_run: Path, artefact: Path, tmp_path: Path) -> None:
    small = exported(finished_run, tmp_path / "small", dtype="bfloat16")
    assert (tmp_path / "small" / "item_vectors.npy").stat().st_size < (artefact / "item_vectors.npy").stat().st_size
    full = Engine(ServedModel.load(artefact))
    one, other = (engine.recommend(Ask(user_id="u05", k=40, exclude_seen=False)) for engine in (small, full))
    scores = {int(item): score for item, score in zip(other.items, other.scores, strict=True)}
    wanted = [scores[int(item)] for item in one.items]
    np.testing.assert_allclose(one.scores, wanted, atol=0.02 * np.abs(other.scores).max())


def test_serving_needs_neither_torch_nor_pandas(artefact: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from caged.products.serve import Ask, Engine, ServedModel
Engine(ServedModel.load(Path({str(artefact)!r}))).recommend(Ask(user_id='u05'))
print([name for name in ('torch', 'pandas') if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("names", [[3, 5, 2**40], ["a", "b", "z", "é"]])
def test_names_are_found(names: list[object]) -> None:
    found = Names(pa.array(names))
    assert [found.row(name) for name in names] == list(range(len(names)))
    assert [found.row(str(name)) for name in names] == list(range(len(names)))
    for stranger in ("", "aa", "zzz", 4, -1, 2**70, 1.5, None, True, "05", " 5", "\ud800"):
        assert found.row(stranger) == -1


def test_the_command_writes_it(finished_run: Path, tmp_path: Path) -> None:
    outcome = caged("export", "artefact", finished_run, "-o", tmp_path / "new", "--no-price", "--json")
    assert json.loads(outcome.out)["items"] == 40
    assert "not empty" in caged("export", "artefact", finished_run, "-o", tmp_path / "new").error
    assert (
        "allowed: float32, bfloat16"
        in caged("export", "artefact", finished_run, "-o", tmp_path / "other", "--dtype", "int8").error
    )
    assert not (tmp_path / "other").exists()
