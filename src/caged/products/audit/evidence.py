"""What the accuracy of an audit rests on, in words; `evaluation.evidence` knows which of the kinds a test is."""

from __future__ import annotations

from caged.evaluation.evidence import CLAIMS, Evidence, checked, of_part, said_by_name

__all__ = ["CAUTIONS", "CLAIMS", "SHORT", "TEXTS", "Evidence", "checked", "of_part", "said_by_name"]

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
