"""What the accuracy of an audit rests on: the kinds of test there are, and which of them a test is."""

from __future__ import annotations

from typing import Literal, TypeGuard, get_args

from caged.errors import ConfigError, unknown

Evidence = Literal["none", "natural", "intervened", "random", "oracle"]
CLAIMS = [kind for kind in get_args(Evidence) if kind != "none"]  # what somebody may say of a test

# Tests of known datasets that are not natural traffic.
_KNOWN: dict[tuple[str, str], Evidence] = {("coat", "test"): "random", ("yelp2018-ood", "test_ood"): "intervened"}

TEXTS: dict[Evidence, str] = {
    "none": "No test part was given: this page describes the lists, it cannot say how good they are.",
    "natural": "The test is natural traffic: people could only choose from what some system showed them, so a list "
    "that repeats popularity is rewarded for it, and accuracy measured here may partly be an echo.",
    "intervened": "The test was balanced by popularity, so that every item counts about equally often: the head start "
    "of popular items is taken away, but the pairs still come from natural traffic.",
    "random": "The test comes from items shown at random: what people chose there does not depend on what a system "
    "likes to show.",
    "oracle": "The test is drawn from people's true taste, which only a simulation knows.",
}
CAUTIONS: dict[Evidence, str] = {
    "none": "what the test rests on was not said",
    "natural": "the test is natural traffic, which favours lists that repeat popularity",
    "intervened": "the test is balanced by popularity, so popular items have no head start in it",
    "random": "the test comes from items shown at random, so it does not repeat what was shown before",
    "oracle": "the test is the simulated truth",
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
