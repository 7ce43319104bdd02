"""What happened to odd input, as sentences: one for every treatment that was applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from caged.evaluation.measure import Missing

ENOUGH = 0.5  # share of the listed places whose item is in train, below which an audit measures something else


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
        "rows_with_infinite_scores",
        lambda n: (
            f"{_rows(n)} {_verb(n, 'has', 'have')} an infinite score, or the largest there is: first or last in the "
            f"list; an item that was masked out does not belong into a list, take such rows out."
        ),
    ),
    _Treatment(
        "lists_with_constant_scores",
        lambda n: f"{_lists(n)} {_verb(n, 'has', 'have')} one score for all items",  # the end depends on ranks
    ),
    _Treatment(
        "lists_rank_against_score",
        lambda n: (
            f"In {_lists(n)} an item has a better score than one of a better rank: the rank decides; name the column "
            f"that is right with --rank-column or --score-column."
        ),
    ),
    _Treatment(
        "valid_pairs_in_train",
        lambda n: (
            f"{n:,} pair{'s' * (n != 1)} of valid {_verb(n, 'is', 'are')} also in train: what chose the model was no "
            f"new data for it."
        ),
    ),
    _Treatment(
        "users_relevant_without_list",
        lambda n: f"{_users(n)} with test items {_verb(n, 'has', 'have')} no list",  # the end depends on `missing`
    ),
    _Treatment(
        "shown_not_listed",
        lambda n: (
            f"{n:,} of the pairs that chance showed {_verb(n, 'stands', 'stand')} in no list: tied behind all that a "
            f"list holds; lists that hold whatever was shown, with its score, say more."
        ),
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
    has_ranks: bool = False,
) -> tuple[str, ...]:
    """A sentence per treatment that happened; `problems_of` has what is wrong altogether."""
    endings = {
        "lists_with_constant_scores": "; their ranks order them."
        if has_ranks
        else ": nothing orders them but the item ids.",
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
    if not has_test:
        said.append("There is no test part, so accuracy is not measured.")
    return tuple(said)


def problems_of(counts: Mapping[str, int], *, has_ranks: bool = False) -> tuple[str, ...]:
    """Sentences about input that is wrong as a whole, so that the numbers are about something else."""

    def all_of(part: str, whole: str) -> bool:
        return 0 < counts.get(whole, 0) == counts.get(part, 0)

    said = []
    if all_of("users_without_profile", "users_listed"):
        said.append("None of the listed users occurs in train: do both files use the same user ids?")
    places, untrained = counts.get("rows_used", 0), counts.get("rows_without_training", 0)
    if all_of("rows_without_training", "rows_used"):
        said.append("None of the listed items occurs in train: do both files use the same item ids?")
    elif places and untrained > (1 - ENOUGH) * places:
        said.append(
            f"Only {1 - untrained / places:.1%} of the listed places have an item that occurs in train: do both files "
            f"use the same item ids?"
        )
    if all_of("test_pairs_of_unknown_items", "test_interactions"):
        said.append("None of the items of test occurs in train: do both files use the same item ids?")
    if all_of("users_relevant_without_list", "users_relevant"):
        said.append("None of the users with test items has a list: do lists and test use the same user ids?")
    if all_of("lists_with_constant_scores", "lists_of_several") and not has_ranks:
        said.append("No list has two different scores, so nothing says which item comes first: is it the right column?")
    if 2 * counts.get("lists_rank_reversed", 0) > counts.get("lists_of_several", 0):
        said.append(
            "In most lists the score grows from the first rank to the last, so one of the two is upside down: name the "
            "one that is right with --rank-column or --score-column."
        )
    return tuple(said)
