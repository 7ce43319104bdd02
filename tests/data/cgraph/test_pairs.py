"""A part on disk behaves as any other interactions, and makes no array per pair unless it is asked for one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caged.data import Interactions, Split
from caged.data.cgraph.pairs import fingerprint_together, of_one_folder
from caged.data.seen import Seen
from caged.evaluation.evaluate import make_validator
from caged.graph import BipartiteGraph
from caged.runs.artefact import save_training_data
from tests.data.cgraph.folders import opened

pytest.importorskip("polars")


def in_memory(part: Interactions) -> Interactions:
    return Interactions(part.user_ids, part.item_ids, part.users, part.items)


def test_training_makes_no_array_of_users_or_items(tmp_path: Path) -> None:
    parts = opened(tmp_path).parts
    split = Split(parts["train"], parts["valid"], parts["test"], kind="given")
    graph = BipartiteGraph.from_interactions(split.train)
    make_validator(parts["train"], parts["valid"])
    save_training_data(tmp_path / "run", parts["train"], parts["valid"])
    assert not {"users", "items"} & vars(parts["train"]).keys()
    wanted = BipartiteGraph.from_interactions(in_memory(parts["train"]))
    for name in ("items", "user_offsets", "item_users", "item_offsets"):
        assert getattr(graph, name).equal(getattr(wanted, name)), name


def test_what_is_derived_is_held_in_memory(tmp_path: Path) -> None:
    train = opened(tmp_path).parts["train"]
    plain = in_memory(train)
    half = np.arange(len(train)) % 2 == 0
    for one, other in ((train.select(half), plain.select(half)), (replace(train, merged=4), plain)):
        np.testing.assert_array_equal(one.keys, other.keys)
        np.testing.assert_array_equal(one.user_offsets, other.user_offsets)
        np.testing.assert_array_equal(one.by_user()[1], other.items)
        assert one.by_item() is None
        assert len(one) == len(other)
        assert one.fingerprint == other.fingerprint
        assert not of_one_folder(one, train)


def test_only_parts_of_one_folder_are_known_to_be_disjoint(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = opened(tmp_path / "a").parts, opened(tmp_path / "b").parts
    assert of_one_folder(one["train"], one["test"])
    assert not of_one_folder(one["train"], other["test"])
    assert not of_one_folder(one["train"], one["train"])
    assert fingerprint_together(one["train"], one["test"]) is None
    assert Seen(one["train"]).shared_with(one["valid"]) == 0
    assert Seen(one["train"]).shared_with(other["train"]) == len(one["train"])
