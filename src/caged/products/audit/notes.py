"""What happened to odd input, as sentences: one for every treatment that was applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from caged.evaluation.measure import Missing


class _Treatment(NamedTuple):
    counted: str  # the key of `AuditResult.counts`
    sentence: Callable[[int], str]


def _rows(number: int) -> str:
    return f"{number:,} row{'s' * (number != 1)}"


def _users(number: int) -> str:
    return f"{number:,} user{'s' * (number != 1)}"


def _lists(number: int) -> str:
    return f"{number:,} list{'s' * (number != 1)}"


def _verb(number: int, one: str, several: str) -> str:
    return one if number == 1 else several


_TREATMENTS = (
    _Treatment(
        "merged_duplicates",
        lambda n: f"{_rows(n)} of the logs repeated a pair and {_verb(n, 'was', 'were')} merged.",
    ),
    _Treatment(
        "users_unknown",
        lambda n: f"{_users(n)} of the lists {_verb(n, 'occurs', 'occur')} in no log: kept, without a profile.",
    ),
    _Treatment(
        "users_without_profile",
        lambda n: (
            f"{_users(n)} with a list {_verb(n, 'has', 'have')} no training interactions: metrics that need a "
            f"profile are undefined for {_verb(n, 'this user', 'these users')}."
        ),
    ),
    _Treatment(
        "items_unknown",
        lambda n: (
            f"{n:,} listed item{'s' * (n != 1)} {_verb(n, 'occurs', 'occur')} in no log and no item table: "
            f"{_verb(n, 'it joins', 'they join')} the catalogue as niche, without interactions."
        ),
    ),
    _Treatment(
        "duplicate_rows",
        lambda n: f"{_rows(n)} named an item a second time for the same user; only the better place counts.",
    ),
    _Treatment(
        "duplicate_ranks",
        lambda n: (
            f"{_rows(n)} had the rank of another item of the same user; score decides where there is one, then "
            f"the order of item ids."
        ),
    ),
    _Treatment(
        "lists_with_rank_gaps",
        lambda n: f"{_lists(n)} left out ranks; the gaps were closed.",
    ),
    _Treatment(
        "users_relevant_without_list",
        lambda n: f"{_users(n)} with test items {_verb(n, 'has', 'have')} no list",  # the end depends on `missing`
    ),
    _Treatment(
        "seen_rows",
        lambda n: f"{_rows(n)} recommended something the user already had (in train or valid)",  # or on `drop_seen`
    ),
)


def notes_of(
    counts: Mapping[str, int],
    ks: Sequence[int],
    *,
    drop_seen: bool,
    missing: Missing,
    has_test: bool,
) -> tuple[str, ...]:
    """A sentence per treatment that happened."""
    endings = {
        "users_relevant_without_list": ": their accuracy counts as 0." if missing == "zero" else ": left out.",
        "seen_rows": ": dropped, later items moved up."
        if drop_seen
        else f", counted in the first {max(ks)} places: kept; --drop-seen removes such items.",
    }
    said = [
        treatment.sentence(counts[treatment.counted]) + endings.get(treatment.counted, "")
        for treatment in _TREATMENTS
        if counts.get(treatment.counted)
    ]
    said += [
        f"{_lists(short)} {_verb(short, 'is', 'are')} shorter than {k}: absent places are misses for accuracy, and "
        f"list metrics divide by the length that is there."
        for k in ks
        if (short := counts.get(f"lists_shorter_than@{k}", 0))
    ]
    if counts["users_listed"] and counts.get("users_without_profile") == counts["users_listed"]:
        said.append("None of the listed users occurs in train: do both files use the same user ids?")
    if counts.get("rows_with_unknown_items") and counts["rows_with_unknown_items"] == counts.get("rows"):
        said.append("None of the listed items occurs in any log: do all files use the same item ids?")
    if not has_test:
        said.append("There is no test part, so accuracy is not measured.")
    return tuple(said)
