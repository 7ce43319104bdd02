"""What to do about it: the commands to try, with the reader's own file names. `docs/remedies.md` has the prices."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from caged.models import METHODS
from caged.page.html import Section
from caged.products.audit.result import AuditResult
from caged.products.audit.severity import severity
from caged.runs.catalogue import method_options
from caged.runs.protocols import PAPER

WORDS = (
    "Try these in order; each costs less than the one after it. Measure before you decide: what helps, and what it "
    "costs, differs from shop to shop. docs/remedies.md says what to expect."
)
Command = tuple[str, str]  # what it does, what to type


def remedies(audit: AuditResult) -> Section | None:
    """Nothing where the lists are not captured, or nobody can tell."""
    graded = severity(audit)
    if graded is None or graded.level == 0:
        return None
    return Section("What you can do", [WORDS], commands=commands_for(audit.command))


def commands_for(command: str) -> list[Command]:
    """From the command that made the page; one that says nothing about files gets names to fill in."""
    words = shlex.split(command)
    if words[1:2] == ["train"] and (run := _value(words, "--out") or _value(words, "--resume")):
        return _of_run(run, _value(words, "--data"), validated=_keeps_validation(words))
    if words[1:2] == ["evaluate"] and len(words) > 2:
        return _of_run(words[2], None)
    if words[1:2] == ["audit"] and (train := _value(words, "--train")):
        return _of_lists(words, train)
    return _of_lists(["caged", "audit", "lists.parquet", "--valid", "valid.csv", "--test", "test.csv"], "train.csv")


def _keeps_validation(words: Sequence[str]) -> bool:
    """Whether a training holds back a part on which the strength of an adjustment can be chosen."""
    method = _value(words, "--method")
    trained = method not in METHODS or method_options(str(method)).trained
    return trained and not {"--no-validation", "--refit"} & {*words} and _value(words, "--protocol") != PAPER.name


def _of_run(run: str, data: str | None, *, validated: bool = True) -> list[Command]:
    adjusted, softmax = f"{run}-adjusted", f"{run}-softmax"
    how = [] if validated else ["--strength", "0.2"]
    return [
        ("Take popularity out of this model. No training; takes seconds.", _typed("adjust", run, *how, "-o", adjusted)),
        (
            "Train a model that learns less of it. Takes about as long as the first one.",
            _typed("train", "--data", data or "LOG", "--method", "softmax", "--out", softmax),
        ),
        ("See what each gains and costs.", _typed("compare", run, adjusted, softmax, "--html", "compare.html")),
    ]


def _of_lists(words: Sequence[str], train: str) -> list[Command]:
    recs = next((word for word in words[2:] if not word.startswith("-")), "lists.parquet")
    valid, test = _value(words, "--valid"), _value(words, "--test")
    how = ["--valid", valid, "--keep", "99%"] if valid else ["--strength", "0.2"]
    tested = ["--test", test] if test else []
    new = "adjusted.parquet"
    return [
        (
            "Put the candidates of these lists in another order. No training; lists need 100 candidates for a top 20.",
            _typed("adjust", recs, "--train", train, *how, *tested, "-o", new),
        ),
        (
            "Look at the result on a page like this one.",
            _typed("audit", new, "--train", train, *tested, "--html", "adjusted.html"),
        ),
        (
            "Or train a recommender that learns less popularity from the same log.",
            _typed("train", "--data", train, "--method", "softmax", "--out", "runs/softmax"),
        ),
    ]


def _value(words: Sequence[str], option: str) -> str | None:
    """What follows an option, in either way of writing it."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return following or None
        if word.startswith(f"{option}="):
            return word.partition("=")[2] or None
    return None


def _typed(*words: str) -> str:
    return shlex.join(["caged", *words])
