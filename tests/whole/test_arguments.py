"""Whatever is passed to a public function of Python: it works, or a `CagedError` says why not in one sentence."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import caged
from tests.conftest import Pair

TINY: dict[str, Any] = {"embedding_size": 4, "epochs": 1, "device": "cpu"}


def wrong_values(world: World) -> dict[str, Any]:
    return {
        "None": None,
        "1.5": 1.5,
        "text of a number": "5",
        "huge": 10**12,
        "beyond 64 bits": 10**30,
        "-1": -1,
        "0": 0,
        "True": True,
        "nan": float("nan"),
        "numpy float": np.float64(2.0),
        "surrogates": "a\ud800",
        "control": "a\x00\x1b",
        "empty text": "",
        "bytes": b"x",
        "list": [],
        "mixed list": [1, "a"],
        "list of None": [None],
        "list of float": [1.5],
        "list of surrogates": ["a\ud800"],
        "tuple": (1, 2),
        "dict": {"u01": 1},
        "array": np.array([1, 2]),
        "table of numbers": np.zeros((2, 2)),
        "object": object(),
        "function": wrong_values,
        "class": int,
        "path": Path("nowhere"),
        "frame": world.frame,
        "other frame": pd.DataFrame({"a": [1]}),
        "series": pd.Series(["u01", None]),
        "split": world.split,
        "log": world.split.train,
        "model": world.model,
    }


class World:
    def __init__(self, pairs: list[Pair], folder: Path) -> None:
        self.frame = pd.DataFrame(pairs, columns=["user_id", "item_id"])
        self.log = caged.Interactions.from_frame(self.frame)
        self.split = caged.split(self.log)
        self.model = caged.LightGCN(**TINY).fit(self.split.train, valid=self.split.valid)
        self.lists = self.model.recommend(k=3)
        self.candidates = self.model.recommend(k=20)
        self.saved = self.model.save(folder / "saved")


@pytest.fixture(scope="module")
def world(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(pairs, tmp_path_factory.mktemp("world"))


CALLS: dict[str, Callable[[World, Any], Any]] = {
    "Recommender(method)": lambda _, value: caged.Recommender(value),
    "LightGCN(seed)": lambda _, value: caged.LightGCN(seed=value),
    "LightGCN(device)": lambda _, value: caged.LightGCN(device=value),
    "LightGCN(epochs)": lambda _, value: caged.LightGCN(epochs=value),
    "LightGCN(l2)": lambda _, value: caged.LightGCN(l2=value),
    "LightGCN(sampler)": lambda _, value: caged.LightGCN(sampler=value),
    "LightGCN(batch_size)": lambda _, value: caged.LightGCN(batch_size=value),
    "fit(train)": lambda _, value: caged.MostPopular(device="cpu").fit(value),
    "fit(valid)": lambda world, value: caged.LightGCN(**TINY).fit(world.split.train, value),
    "fit(k)": lambda world, value: caged.LightGCN(**TINY).fit(world.split, k=value),
    "fit(observers)": lambda world, value: caged.LightGCN(**TINY).fit(world.split, observers=value),
    "refit(data)": lambda world, value: world.model.refit(value),
    "refit(observers)": lambda world, value: world.model.refit(world.log, observers=value),
    "LightGCN(refit)": lambda _, value: caged.LightGCN(refit=value),
    "recommend(user_ids)": lambda world, value: world.model.recommend(value, k=2),
    "recommend(k)": lambda world, value: world.model.recommend("u01", k=value),
    "recommend(unknown)": lambda world, value: world.model.recommend("u01", k=2, unknown=value),
    "recommend(exclude_seen)": lambda world, value: world.model.recommend("u01", k=2, exclude_seen=value),
    "recommend(candidates)": lambda world, value: world.model.recommend("u01", k=2, candidates=value),
    "recommend(exclude)": lambda world, value: world.model.recommend("u01", k=2, exclude=value),
    "recommend(titles)": lambda world, value: world.model.recommend("u01", k=2, titles=value),
    "evaluate(test)": lambda world, value: world.model.evaluate(value),
    "evaluate(k)": lambda world, value: world.model.evaluate(world.split, k=value),
    "evaluate(evidence)": lambda world, value: world.model.evaluate(world.split, k=2, evidence=value),
    "similar_items(item_ids)": lambda world, value: world.model.similar_items(value, k=2),
    "similar_items(k)": lambda world, value: world.model.similar_items("i01", k=value),
    "adjusted(keep)": lambda world, value: world.model.adjusted(value, k=3),
    "adjusted(strength)": lambda world, value: world.model.adjusted(strength=value),
    "adjusted(form)": lambda world, value: world.model.adjusted(strength=0.5, form=value),
    "adjusted(k)": lambda world, value: world.model.adjusted(k=value),
    "adjust(recs)": lambda world, value: caged.adjust(value, world.split.train, strength=0.5, k=1),
    "adjust(train)": lambda world, value: caged.adjust(world.candidates, value, strength=0.5, k=1),
    "adjust(valid)": lambda world, value: caged.adjust(world.candidates, world.split.train, valid=value, k=1),
    "adjust(test)": lambda world, value: caged.adjust(world.candidates, world.split.train, test=value, strength=0, k=1),
    "adjust(keep)": lambda world, value: caged.adjust(
        world.candidates, world.split.train, valid=world.split.valid, keep=value, k=1
    ),
    "adjust(strength)": lambda world, value: caged.adjust(world.candidates, world.split.train, strength=value, k=1),
    "adjust(form)": lambda world, value: caged.adjust(
        world.candidates, world.split.train, strength=0.5, form=value, k=1
    ),
    "adjust(k)": lambda world, value: caged.adjust(world.candidates, world.split.train, strength=0.5, k=value),
    "adjust(ids)": lambda world, value: caged.adjust(world.candidates, world.split.train, strength=0.5, k=1, ids=value),
    "save(folder)": lambda world, value: world.model.save(value),
    "load(folder)": lambda _, value: caged.load(value),
    "load(device)": lambda world, value: caged.load(world.saved, device=value),
    "Recommender.load(folder)": lambda _, value: caged.LightGCN.load(value),
    "split(data)": lambda _, value: caged.split(value),
    "split(given data)": lambda _, value: caged.split(value, "given"),
    "split(given train)": lambda _, value: caged.split({"train": value, "test": value}, "given"),
    "split(kind)": lambda world, value: caged.split(world.log, value),
    "split(test_share)": lambda world, value: caged.split(world.log, "intervened", test_share=value),
    "split(validate_on)": lambda world, value: caged.split(world.log, validate_on=value),
    "split(seed)": lambda world, value: caged.split(world.log, seed=value),
    "dataset(name)": lambda _, value: caged.dataset(value),
    "Split(train)": lambda _, value: caged.Split(value, None, None, kind="given"),
    "Split(test)": lambda world, value: caged.Split(world.split.train, None, value, kind="given"),
    "Interactions.read(path)": lambda _, value: caged.Interactions.read(value),
    "Interactions.from_frame(frame)": lambda _, value: caged.Interactions.from_frame(value),
    "Interactions.from_frame(user_column)": lambda world, value: caged.Interactions.from_frame(
        world.frame, user_column=value
    ),
    "Interactions.from_frame(keep)": lambda world, value: caged.Interactions.from_frame(world.frame, keep=value),
    "Interactions.from_frame(ids)": lambda world, value: caged.Interactions.from_frame(world.frame, ids=value),
    "Interactions.from_frame(min_rating)": lambda world, value: caged.Interactions.from_frame(
        world.frame.assign(rating=1.0), min_rating=value
    ),
    "Interactions.from_frame(min_user_interactions)": lambda world, value: caged.Interactions.from_frame(
        world.frame, min_user_interactions=value
    ),
    "Interactions.from_ids": lambda _, value: caged.Interactions.from_ids(value, value),
    "Interactions.from_ids(rating)": lambda _, value: caged.Interactions.from_ids(["a"], ["x"], rating=value),
    "Interactions.from_ids(timestamp)": lambda _, value: caged.Interactions.from_ids(["a"], ["x"], timestamp=value),
    "Interactions.from_csr(matrix)": lambda _, value: caged.Interactions.from_csr(value),
    "Interactions.select": lambda world, value: world.log.select(value),
    "Interactions.reindexed": lambda world, value: world.log.reindexed(value, value),
    "Interactions.joined": lambda _, value: caged.Interactions.joined(value),
    "IdMap.of": lambda _, value: caged.IdMap.of(value),
    "IdMap.numbered": lambda _, value: caged.IdMap.numbered(value),
    "IdMap.range": lambda _, value: caged.IdMap.range(value),
    "IdMap.union": lambda _, value: caged.IdMap.union(value),
    "IdMap.rows32": lambda world, value: world.log.user_ids.rows32(value),
    "IdMap.rows": lambda world, value: world.log.user_ids.rows(value),
    "IdMap.external": lambda world, value: world.log.user_ids.external(value),
    "audit(recs)": lambda world, value: caged.audit(value, world.split.train, world.split.test, k=2),
    "audit(train)": lambda world, value: caged.audit(world.lists, value, k=2),
    "audit(test)": lambda world, value: caged.audit(world.lists, world.split.train, value, k=2),
    "audit(k)": lambda world, value: caged.audit(world.lists, world.split.train, k=value),
    "compare(folders)": lambda _, value: caged.compare(value),
}


@pytest.mark.parametrize("call", CALLS)
def test_wrong_arguments(
    call: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.CRITICAL)
    for name, value in wrong_values(world).items():
        said = error_of(lambda value=value: CALLS[call](world, value))  # type: ignore[misc]
        assert said is None or isinstance(said, caged.CagedError), (call, name, repr(said))
        assert said is None or (10 < len(str(said)) < 2000 and "\n" not in str(said)), (call, name, str(said))


def error_of(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


REFUSED = {
    "recommend(k)": ("1.5", "text of a number", "huge", "True", "0"),
    "fit(k)": ("1.5", "text of a number", "huge", "True", "0"),
    "similar_items(k)": ("1.5", "text of a number", "huge", "True", "0"),
    "audit(k)": ("1.5", "text of a number", "huge", "True", "0"),
    "LightGCN(seed)": ("1.5", "text of a number", "beyond 64 bits", "-1", "True", "None"),
    "split(seed)": ("1.5", "text of a number", "beyond 64 bits", "-1", "True", "None"),
    "IdMap.of": ("text of a number", "bytes", "frame", "surrogates", "list of surrogates"),
    "recommend(user_ids)": ("surrogates", "list of surrogates", "frame"),
    "compare(folders)": ("text of a number", "path"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_arguments_that_have_no_meaning_are_not_guessed(call: str, world: World) -> None:
    for name in REFUSED[call]:
        with pytest.raises(caged.CagedError):
            CALLS[call](world, wrong_values(world)[name])


def test_every_public_name_is_tried() -> None:
    """A new public function, or method of a class, belongs into the table."""
    functions = {name for name in caged.__all__ if callable(getattr(caged, name)) and name[0].islower()}
    assert functions == {call.partition("(")[0] for call in CALLS} & functions
    for kind in (caged.Interactions, caged.IdMap):
        tried = {call.partition(".")[2].partition("(")[0] for call in CALLS if call.startswith(kind.__name__)}
        assert takes_something(kind) - tried <= {"build"}  # takes rows, which `from_ids` makes


def takes_something(kind: type) -> set[str]:
    """The public methods with arguments."""
    methods = {name: getattr(kind, name) for name in vars(kind) if not name.startswith("_")}
    named = {name: inspect.signature(value).parameters for name, value in methods.items() if callable(value)}
    return {name for name, parameters in named.items() if set(parameters) - {"self"}}


def test_memory_that_nobody_has_is_told(world: World) -> None:
    with pytest.raises(caged.CagedError, match="memory ran out"):
        caged.LightGCN(embedding_size=999_999_999_999, epochs=1, device="cpu").fit(world.split)
