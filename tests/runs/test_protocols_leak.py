"""Under `honest` training cannot reach the test part: there is no path to it, and nothing depends on it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest

import caged
from caged.data import Development, Interactions, Split
from caged.runs import execute as run_module
from caged.runs import train as train_module
from caged.runs.protocols import HONEST, PAPER, selection_parts
from caged.training import Loop
from tests.cli.invoke import caged as caged_command
from tests.cli.invoke import refused_without_a_trace, train
from tests.conftest import Pair, write_log


def neighbours(thing: Any) -> Iterator[Any]:
    """What an object holds: attributes, items, closures, defaults, bound selves; not the modules code lives in."""
    if isinstance(thing, dict):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from thing
    elif isinstance(thing, MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, CellType):
        yield thing.cell_contents
    elif isinstance(thing, FunctionType):
        yield from thing.__closure__ or ()
        yield from thing.__defaults__ or ()
        yield from (thing.__kwdefaults__ or {}).values()
    elif isinstance(thing, np.ndarray):
        yield thing.base
    else:
        yield from getattr(thing, "__dict__", {}).values()
        slots = (name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()))
        yield from (getattr(thing, name, None) for name in slots)


def reachable(root: Any) -> dict[int, Any]:
    found: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in found or isinstance(thing, type | ModuleType | str | bytes | int | float | None):
            continue
        found[id(thing)] = thing
        waiting.extend(neighbours(thing))
    return found


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Loop, Split]]:
    """The loops that `caged train` builds, each with the split it was cut off from, looked at while training."""
    seen: list[tuple[Loop, Split]] = []
    splits: list[Split] = []
    original_parts = train_module.selection_parts
    original_run = Loop.run

    def parts(split: Split, *rest: Any, **more: Any) -> Development:
        splits.append(split)
        return original_parts(split, *rest, **more)

    def run(loop: Loop) -> Any:
        result = original_run(loop)
        seen.append((loop, splits[-1]))
        return result

    monkeypatch.setattr(train_module, "selection_parts", parts)
    monkeypatch.setattr(Loop, "run", run)
    return seen


def parts_within(loop: Loop) -> set[int]:
    return {key for key, thing in reachable(loop).items() if isinstance(thing, Interactions)}


@pytest.mark.parametrize("method", ["lightgcn", "mostpop"])
def test_nothing_in_the_loop_leads_to_the_test_part(
    method: str, log_csv: Path, tmp_path: Path, loops: list[tuple[Loop, Split]]
) -> None:
    train(log_csv, tmp_path / "run", method=method)
    [(loop, split)] = loops
    within = reachable(loop)
    if method == "lightgcn":  # the walker gets as far as the parts; a closed form is given both as one
        assert id(split.train) in within
        assert id(split.valid) in within
    assert id(split.test) not in within
    assert id(split) not in within
    assert split.test is not None
    assert id(split.test.users) not in within
    assert id(split.test.items) not in within
    arrays = [thing for thing in within.values() if isinstance(thing, np.ndarray)]
    assert arrays or method == "mostpop"
    assert not any(np.shares_memory(array, split.test.items) for array in arrays)


def test_under_paper_the_walker_finds_the_test_part(
    released: Path, tmp_path: Path, loops: list[tuple[Loop, Split]]
) -> None:
    train(released, tmp_path / "run", "--protocol", "paper")
    [(loop, split)] = loops
    assert id(split.test) in parts_within(loop)


def test_development_has_no_test(log_csv: Path) -> None:
    split = caged.split(caged.Interactions.read(log_csv), seed=1)
    assert Development._fields == ("train", "valid")
    assert split.development() == (split.train, split.valid)
    assert selection_parts(split, HONEST) == (split.train, split.valid)
    assert selection_parts(split, PAPER) == (split.train, split.test)
    assert {"test", "parts"}.isdisjoint(inspect.signature(Loop).parameters)


def test_training_does_not_depend_on_the_test_part(pairs: list[Pair], tmp_path: Path) -> None:
    """The same train and valid files, another test file: same model, same history, other test metrics."""
    owned: dict[str, list[str]] = {}
    for user, item in pairs:
        owned.setdefault(user, []).append(item)
    train_rows = [(user, item) for user, items in owned.items() for item in items[3:]]
    valid_rows = [(user, items[2]) for user, items in owned.items()]
    for name, position in (("one", 0), ("other", 1)):
        folder = tmp_path / f"data-{name}"
        write_log(folder / "train.csv", train_rows)
        write_log(folder / "valid.csv", valid_rows)
        write_log(folder / "test.csv", [(user, items[position]) for user, items in owned.items()])
        train(folder, tmp_path / name, "--set", "train.epochs=4")
    one, other = tmp_path / "one", tmp_path / "other"
    for file in ("model.safetensors", "checkpoint.json", "training_data.safetensors"):
        assert (one / "checkpoint" / file).read_bytes() == (other / "checkpoint" / file).read_bytes(), file
    histories = [
        [{**json.loads(line), "seconds": None} for line in (run / "history.jsonl").read_text().splitlines()]
        for run in (one, other)
    ]
    assert len(histories[0]) == 4
    assert histories[0] == histories[1]
    assert (one / "metrics.json").read_bytes() != (other / "metrics.json").read_bytes()


def test_the_test_part_is_read_once_after_training(
    log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = []
    original_run, original_test = Loop.run, run_module.evaluate_part

    def run(loop: Loop) -> Any:
        result = original_run(loop)
        events.append("trained")
        return result

    def evaluate_test(*arguments: Any, **options: Any) -> Any:
        events.append("tested")
        return original_test(*arguments, **options)

    monkeypatch.setattr(Loop, "run", run)
    monkeypatch.setattr(run_module, "evaluate_part", evaluate_test)
    train(log_csv, tmp_path / "run")
    assert events == ["trained", "tested"]


def strangers_in_test(released: Path, folder: Path, lines: str) -> Path:
    """The released split with further users and items in its test part."""
    folder.mkdir()
    (folder / "train.txt").write_text((released / "train.txt").read_text())
    (folder / "test.txt").write_text((released / "test.txt").read_text() + lines)
    return folder


def test_with_catalogue_train_new_names_in_test_change_no_model(released: Path, tmp_path: Path) -> None:
    """By default they take rows of the initial tables, and so another model is trained."""
    plain = strangers_in_test(released, tmp_path / "plain", "")
    strange = strangers_in_test(released, tmp_path / "strange", "7 900\n500 3\n")
    models = {}
    for catalogue in ("all", "train"):
        for data in (plain, strange):
            run = tmp_path / f"{catalogue}-{data.name}"
            outcome = train(data, run, "--catalogue", catalogue)
            models[run.name] = (run / "checkpoint" / "model.safetensors").read_bytes()
            stored = json.loads((run / "run.json").read_text())
            assert stored["spec"]["config"]["data"]["catalogue"] == catalogue
            said = "7 of the 92 pairs of test (7.6%) name users or items that training never sees" in outcome.err
            assert said == (run.name == "train-strange")
    assert models["train-plain"] == models["train-strange"]
    assert models["all-plain"] != models["all-strange"]
    again = json.loads(caged_command("evaluate", tmp_path / "train-strange", "--json").out)
    assert again["metrics"] == json.loads((tmp_path / "train-strange" / "metrics.json").read_text())["metrics"]


def test_paper_owns_its_catalogue(released: Path, tmp_path: Path) -> None:
    arguments = ["train", "--data", str(released), "--method", "mostpop", "--protocol", "paper", "--catalogue", "train"]
    refused_without_a_trace(tmp_path, arguments, "data.catalogue is 'train', but protocol 'paper' fixes the split")
