"""What the accuracy of an audit rests on: the kinds of test there are, and which of them a test is."""

from __future__ import annotations

from typing import Literal, TypeGuard, get_args

from caged.errors import ConfigError, unknown

Evidence = Literal["none", "natural", "intervened", "random", "oracle"]
CLAIMS = [kind for kind in get_args(Evidence) if kind != "none"]  # what somebody may say of a test

# Tests of known datasets that are not natural traffic.
_KNOWN: dict[tuple[str, str], Evidence] = {("coat", "test"): "random", ("yelp2018-ood", "test_ood"): "intervened"}

# What stands beside accuracy on a page: the first sentence says what the test is, the second what follows from it.
TEXTS: dict[Evidence, str] = {
    "none": "There is no test part, so this page describes the lists and cannot say how good they are.",
    "natural": "Accuracy was measured on ordinary traffic. People could only choose from what some system showed them, "
    "so lists that repeat popularity do well here for that reason alone.",
    "intervened": "Accuracy was measured on a test balanced by popularity. Every item counts about equally often, so "
    "popular items have no head start; the choices themselves are still ordinary traffic.",
    "random": "Accuracy was measured on items shown at random. What people chose there does not depend on what a "
    "system likes to show.",
    "oracle": "Accuracy was measured against people's true taste, which only a simulation knows.",
}
CAUTIONS: dict[Evidence, str] = {
    "none": "nobody said where the test comes from",
    "natural": "ordinary traffic favours lists that repeat popularity",
    "intervened": "the test is balanced by popularity, so popular items have no head start",
    "random": "the test comes from items shown at random, so it does not repeat what was shown before",
    "oracle": "the test is the simulated truth",
}
# In a few words, for a column or a list.
SHORT: dict[Evidence, str] = {
    "none": "no test",
    "natural": "ordinary traffic",
    "intervened": "balanced by popularity",
    "random": "shown at random",
    "oracle": "true taste",
}


def checked(claim: str) -> Evidence:
    if not _is_claim(claim):
        raise ConfigError(unknown("evidence", claim, CLAIMS))
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
