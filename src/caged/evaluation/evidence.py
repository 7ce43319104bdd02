"""What accuracy rests on: the kinds of test there are, and which of them a test is."""

from __future__ import annotations

from typing import Literal, TypeGuard, get_args

from caged.arguments import choice

Evidence = Literal["none", "natural", "intervened", "random", "oracle"]
CLAIMS = [kind for kind in get_args(Evidence) if kind != "none"]  # what somebody may say of a test

# Tests of known datasets that are not natural traffic.
_KNOWN: dict[tuple[str, str], Evidence] = {
    ("coat", "test"): "random",
    ("kuairand", "test"): "random",
    ("yelp2018-ood", "test_ood"): "intervened",
}


def checked(claim: str) -> Evidence:
    choice("evidence", claim, CLAIMS)
    assert _is_claim(claim)
    return claim


def said_by_name(test: str) -> Evidence:
    """A test that is called after a kind of evidence is of that kind.

    >>> said_by_name("oracle"), said_by_name("later")
    ('oracle', 'natural')
    """
    return test if _is_claim(test) else "natural"


def of_part(part: str, *, dataset: str, split: str) -> Evidence:
    """Of a part of a dataset: known, made by the kind of split, or said by its name.

    >>> of_part("test", dataset="coat", split="given"), of_part("test_oracle", dataset="mine", split="given")
    ('random', 'oracle')
    """
    if (dataset, part) in _KNOWN:
        return _KNOWN[dataset, part]
    made = part == "test" and split == "intervened"
    return "intervened" if made else said_by_name(part.removeprefix("test_"))


def _is_claim(text: str) -> TypeGuard[Evidence]:
    return text in CLAIMS
