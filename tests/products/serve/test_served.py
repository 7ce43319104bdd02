"""Another model takes the place of the one that answers; a broken one does not."""

from __future__ import annotations

import gc
import shutil
import weakref
from pathlib import Path

import pytest

from caged.errors import ConfigError, RunError
from caged.products.serve import MANIFEST, Ask, schemas
from caged.products.serve.lists import batch_text
from caged.products.serve.served import Served, Watcher, serve_folders
from tests.cli.invoke import train
from tests.products.serve.exported import exported


@pytest.fixture(scope="module")
def two(finished_run: Path, log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("two")
    exported(finished_run, folder / "one", with_price=False)
    train(log_csv, folder / "run", method="itemknn")
    exported(folder / "run", folder / "other", with_price=False)
    return folder / "one", folder / "other"


def put(artefact: Path, place: Path) -> None:
    """In the place of what was there, as one should: by renaming."""
    new, old = place.with_name("new"), place.with_name("old")
    shutil.copytree(artefact, new)
    if place.exists():
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def test_who_has_begun_ends_with_the_old_model(two: tuple[Path, Path], tmp_path: Path) -> None:
    put(two[0], tmp_path / "served")
    served = Served("served", tmp_path / "served")
    before = served.current
    put(two[1], tmp_path / "served")
    after = served.swap()
    assert served.current is after
    assert before.version != after.version
    assert [one.engine.model.manifest.method for one in (before, after)] == ["lightgcn", "itemknn"]
    assert len(before.engine.recommend(Ask(user_id="u05")).items) == 20  # its files are gone, its memory is not
    assert (served.swaps, served.refused) == (1, 0)


@pytest.mark.parametrize("damage", ["flipped", "lacking", "no manifest", "no json", "gone"])
def test_a_broken_artefact_is_refused_and_the_old_model_stays(
    two: tuple[Path, Path], tmp_path: Path, damage: str
) -> None:
    put(two[0], tmp_path / "served")
    served = Served("served", tmp_path / "served")
    before = served.current
    put(two[1], tmp_path / "served")
    if damage == "flipped":
        file = tmp_path / "served" / "seen_items.npy"
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "gone":
        shutil.rmtree(tmp_path / "served")
    elif damage == "no json":
        (tmp_path / "served" / MANIFEST).write_text("{")
    else:
        (tmp_path / "served" / (MANIFEST if damage == "no manifest" else "items.arrow")).unlink()
    with pytest.raises(RunError):
        served.swap()
    assert served.current is before
    assert (served.swaps, served.refused) == (0, 1)


def test_a_watcher_waits_until_the_folder_rests(two: tuple[Path, Path], tmp_path: Path) -> None:
    put(two[0], tmp_path / "served")
    served = Served("served", tmp_path / "served")
    watcher, before = Watcher([served]), served.current
    for _ in range(3):
        watcher.look()
    assert served.current is before
    shutil.rmtree(tmp_path / "served")
    watcher.look()
    assert served.current is before
    put(two[1], tmp_path / "served")
    watcher.look()
    assert served.current is before  # it may still be written
    watcher.look()
    assert served.engine.model.manifest.method == "itemknn"
    for _ in range(3):
        watcher.look()
    assert (served.swaps, served.refused) == (1, 0)


def test_a_watcher_tries_a_broken_folder_once_and_again_when_it_changes(
    two: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(two[0], tmp_path / "served")
    served = Served("served", tmp_path / "served")
    watcher = Watcher([served])
    put(two[1], tmp_path / "served")
    lacking = tmp_path / "served" / "items.arrow"
    lacking.rename(tmp_path / "items.arrow")
    for _ in range(5):
        watcher.look()
    assert (served.swaps, served.refused) == (0, 1)
    assert "the model of before stays" in caplog.text
    shutil.move(tmp_path / "items.arrow", lacking)
    for _ in range(3):
        watcher.look()
    assert (served.swaps, served.refused) == (1, 1)


def test_a_thread_looks(two: tuple[Path, Path], tmp_path: Path) -> None:
    put(two[0], tmp_path / "served")
    served = Served("served", tmp_path / "served")
    watcher = Watcher([served], every_s=0.01)
    watcher.start()
    put(two[1], tmp_path / "served")
    for _ in range(1000):
        if served.swaps:
            break
        watcher._end.wait(0.01)
    watcher.stop()
    assert served.swaps == 1


def test_a_model_that_was_swapped_out_goes_without_the_garbage_collector(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    """A server keeps the collector away from what is there when it starts, its first model included."""
    put(two[0], tmp_path / "served")
    served = Served("served", tmp_path / "served")
    users = served.engine.model.users
    asked = [schemas.OnePerson(user_id=users[0], popularity=True), schemas.OnePerson(user_id="nobody")]
    assert b"error" in batch_text(served.current, asked)
    first = weakref.ref(served.engine.model)
    gc.disable()
    try:
        served.swap()
        assert first() is None
    finally:
        gc.enable()


def test_folders_are_called_by_their_names(two: tuple[Path, Path], tmp_path: Path) -> None:
    assert list(serve_folders(two)) == ["one", "other"]
    shutil.copytree(two[1], tmp_path / "one")
    with pytest.raises(ConfigError, match="two artefacts are called 'one'"):
        serve_folders([two[0], tmp_path / "one"])
    with pytest.raises(ConfigError, match="no artefact is named"):
        serve_folders([])
