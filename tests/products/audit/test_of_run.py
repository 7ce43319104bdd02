from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caged.data import IdMap, Interactions, Split
from caged.products.audit.of_run import evidence_of
from caged.runs.loading import Loaded


def loaded(dataset: str, kind: str) -> Loaded:
    users, items = IdMap.range(2), IdMap.range(3)

    def pairs(item: int) -> Interactions:
        return Interactions.build(np.arange(2), np.full(2, item), user_ids=users, item_ids=items)

    split = Split(pairs(0), pairs(1), pairs(2), kind=kind)
    return Loaded(split, {}, {"name": dataset}, Path(dataset))


@pytest.mark.parametrize(
    ("dataset", "kind", "part", "expected"),
    [
        ("ml-1m", "random", "test", "natural"),
        ("coat", "given", "test", "random"),
        ("coat", "given", "valid", "natural"),
        ("yelp2018-ood", "given", "test", "natural"),
        ("yelp2018-ood", "given", "test_ood", "intervened"),
        ("mine", "intervened", "test", "intervened"),
        ("mine", "intervened", "valid", "natural"),
        ("market", "given", "test_oracle", "oracle"),
    ],
)
def test_what_a_part_rests_on(dataset: str, kind: str, part: str, expected: str) -> None:
    assert evidence_of(loaded(dataset, kind), part) == expected
