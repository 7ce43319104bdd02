from __future__ import annotations

import pytest

from caged.errors import ConfigError
from caged.evaluation.evidence import CLAIMS, checked, of_part, said_by_name


@pytest.mark.parametrize(
    ("dataset", "split", "part", "expected"),
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
def test_what_a_part_rests_on(dataset: str, split: str, part: str, expected: str) -> None:
    assert of_part(part, dataset=dataset, split=split) == expected


def test_what_may_be_claimed() -> None:
    assert [checked(claim) for claim in CLAIMS] == CLAIMS
    assert said_by_name("none") == "natural"
    with pytest.raises(ConfigError, match="unknown evidence 'none'"):
        checked("none")
