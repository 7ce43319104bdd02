"""What values were measured with, and which of them depend on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from caged.data.ids import IdMap
from caged.data.popularity import ItemGroups
from caged.evaluation.basis import Basis
from caged.evaluation.measure import measure
from caged.evaluation.metrics import MetricKey
from tests.evaluation.worlds import World, random_world

COUNTS = {"users_relevant_without_list": 3}


def world(**changed: int) -> World:
    return replace(random_world(np.random.default_rng(4)), **changed)  # type: ignore[arg-type]


def test_the_same_input_has_the_same_basis_and_survives_its_file() -> None:
    basis = Basis.of(world().reference, COUNTS, missing="skip")
    assert basis.unlike(Basis.of(world().reference, COUNTS, missing="skip")) == []
    assert Basis.from_json(basis.to_json()) == basis
    assert (basis.items, basis.left_out) == (40, 3)
    assert Basis.from_json(None) is None


def test_integers_and_text_are_other_catalogues() -> None:
    reference = world().reference
    bases = [
        Basis.of(reference, COUNTS, catalogue=IdMap.of(ids)) for ids in ([1, 2], ["1", "2"], ["12"], ["1", "2", "3"])
    ]
    assert len({basis.catalogue for basis in bases}) == 4


def test_skipping_nobody_is_no_difference() -> None:
    nobody = {"users_relevant_without_list": 0}
    reference = world().reference
    zero, skip = Basis.of(reference, COUNTS), Basis.of(reference, nobody, missing="skip")
    assert zero.unlike(skip) == []
    (missing,) = zero.unlike(Basis.of(reference, COUNTS, missing="skip"))
    assert "0 and 3 of them" in missing.sentence


@pytest.mark.parametrize("what", ["catalogue", "missing", "groups"])
def test_every_value_that_changes_with_it_is_known_to(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = world()
    before = measure(one.lists, one.reference, (5,))
    basis = Basis.of(one.reference, before.counts)
    if what == "catalogue":
        one = world(item_count=60)
    if what == "groups":
        plain = ItemGroups.from_degrees

        def other(degrees: np.ndarray) -> ItemGroups:
            groups = plain(degrees)
            return replace(groups, popular=groups.popular & (np.arange(len(degrees)) % 2 == 0))

        monkeypatch.setattr(ItemGroups, "from_degrees", other)
    how = "skip" if what == "missing" else "zero"
    after = measure(one.lists, one.reference, (5,), missing=how)
    (unlike,) = basis.unlike(Basis.of(one.reference, after.counts, missing=how))
    changed = {
        key for key in before.metrics if not np.allclose(before.metrics[key], after.metrics[key], equal_nan=True)
    }
    concerned = {key for key in before.metrics if unlike.concerns(MetricKey.parse(key))}
    assert changed
    assert changed <= concerned
