"""Train, validation and test: disjoint parts of one catalogue.

Every way to split a log puts each pair into exactly one part and depends on the pairs, their times and the seed, never
on the order of the file's rows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from caged.arguments import checked_seed, instance
from caged.data.cgraph.pairs import of_one_folder
from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.data.parts import NOT_LIKED_BEFORE, PARTS
from caged.data.popularity import gini
from caged.data.seen import Seen
from caged.data.splits.draws import draw_intervened, ranks_within
from caged.errors import DataError, unknown
from caged.seeding import numpy_generator

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"
Protocol = Literal["honest", "paper"]

FROM_FRAME = "such as Interactions.from_frame makes of a frame"
FEWEST_TO_SPLIT = 3  # interactions: one for each part
CARVED_SHARE = 8  # one in eight of a user's training interactions


class Development(NamedTuple):
    """What training may see: there is no test part to ask for."""

    train: Interactions
    valid: Interactions | None

    def whole(self) -> Development:
        """The validation part in train: where nothing is chosen on it, it may as well teach."""
        return self if self.valid is None else Development(Interactions.joined([self.train, self.valid]), None)


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint parts with shared id maps; a user without training interactions still has a row.

    `test_negative` are pairs that were shown at random and not liked; `test` then holds the liked ones. So are
    `valid_negative` beside `valid`, from before the test: what became of them later is nobody's business until then, so
    they may be in a test part as well. `kind` and `parameters` say how the split was made, `notes` what was counted or
    measured meanwhile.
    """

    train: Interactions
    valid: Interactions | None
    test: Interactions | None
    kind: str
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    notes: Mapping[str, int | float] = field(default_factory=dict)
    test_negative: Interactions | None = None
    valid_negative: Interactions | None = None

    def __post_init__(self) -> None:
        for name in PARTS:
            part = getattr(self, name)
            if part is not None or name == "train":
                instance(name, part, Interactions, FROM_FRAME)
        if len(self.train) == 0:
            raise DataError("the training part is empty; a split needs at least one training interaction")
        if self.test_negative is not None and self.test is None:
            raise DataError("there is a test_negative part and no test part with what was liked; add it")
        if self.valid_negative is not None and self.valid is None:
            raise DataError("there is a valid_negative part and no valid part with what was liked; add it")
        for (first, one), (second, other) in combinations(self.parts.items(), 2):
            _check_same_rows(first, one, second, other)
            if not (first.startswith("test") and second == NOT_LIKED_BEFORE):
                _check_disjoint(first, one, second, other)

    @property
    def parts(self) -> dict[str, Interactions]:
        """The parts that exist, by name."""
        return {name: part for name in PARTS if (part := getattr(self, name)) is not None}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of one `part<TAB>fingerprint of the part<LF>` line for each of `PARTS` that exists."""
        lines = "".join(f"{name}\t{part.fingerprint}\n" for name, part in self.parts.items())
        return hashlib.sha256(lines.encode()).hexdigest()

    @property
    def item_gini(self) -> dict[str, float]:
        """For each part, how unequally its interactions are spread over all items of the catalogue."""
        return {name: gini(part.item_degrees) for name, part in self.parts.items()}

    def development(self) -> Development:
        return Development(self.train, self.valid)

    def seen_before(self, evaluated: Interactions) -> Seen:
        """What users had before a part is evaluated: train, and valid unless that is the part."""
        return Seen(self.train, None if evaluated is self.valid else self.valid)


def split_per_user(data: Interactions, *, seed: int = 1) -> Split:
    """Per-user random 7:1:2.

    Of a user's n >= 3 interactions ceil(n / 5) go to test and max(1, floor(n / 10)) to validation; users with fewer
    stay in train. The draw depends on the pairs and the seed, not on the order of the file.
    """
    count = data.user_degrees
    test_count, valid_count = held_out_per_user(count)
    rank = _random_ranks(data, random_split_generator(seed))
    in_test = rank < test_count[data.users]
    in_valid = ~in_test & (rank < (test_count + valid_count)[data.users])
    return _divided(
        data,
        in_valid,
        in_test,
        kind="random",
        parameters=random_parameters(seed),
        notes={"users_kept_in_train": users_kept_in_train(count)},
    )


def held_out_per_user(count: Array) -> tuple[Array, Array]:
    """How many of each user's interactions go to test and to validation under a random split."""
    check_splittable(count)
    splittable = count >= FEWEST_TO_SPLIT
    return np.where(splittable, (count + 4) // 5, 0), np.where(splittable, np.maximum(1, count // 10), 0)


def random_split_generator(seed: int) -> np.random.Generator:
    return numpy_generator(seed, "split")


def random_parameters(seed: int) -> dict[str, JSON]:
    return {"seed": seed, "shares": [7, 1, 2]}


def users_kept_in_train(count: Array) -> int:
    """Those with too few interactions to hold any out."""
    return int(np.count_nonzero((count > 0) & (count < FEWEST_TO_SPLIT)))


def split_by_time(data: Interactions, *, test_share: float = 0.2, valid_share: float = 0.1) -> Split:
    """Two cuts in time, the same for all users: train lies before validation, validation before test.

    With n interactions, the cuts are placed before the last ceil(test_share n) and before the max(1, floor(valid_share
    n)) ahead of these. Interactions at the time of a cut all go to the earlier part, so that the same moment is never
    on both sides; the later parts can therefore be smaller than their shares. Users and items that only occur later
    stay in their part and are counted.
    """
    if data.timestamp is None:
        raise without_timestamps("time")
    time = data.timestamp
    ordered = np.sort(time)
    cuts = TimeCuts.of(
        len(data),
        lambda place: int(ordered[place]),
        lambda moment: int(np.count_nonzero(time == moment)),
        test_share=test_share,
        valid_share=valid_share,
    )
    in_valid, in_test = cuts.divide(time)
    parts = _divided(data, in_valid, in_test, kind="time", parameters=cuts.parameters(data.timestamp_unit))
    return replace(parts, notes=_without_training(parts))


class TimeCuts(NamedTuple):
    """The last moments of train and of validation."""

    train_until: int
    valid_until: int
    test_share: float
    valid_share: float

    @classmethod
    def of(
        cls,
        total: int,
        at: Callable[[int], int],
        occurring: Callable[[int], int],
        *,
        test_share: float,
        valid_share: float,
    ) -> TimeCuts:
        """`at(place)` is the timestamp at a place of their ascending order, `occurring` how many are a moment's."""
        test_count, valid_count = held_out_counts(total, test_share, valid_share)
        valid_until, train_until, last = (
            at(total - test_count - 1),
            at(total - test_count - valid_count - 1),
            at(total - 1),
        )
        if valid_until in (train_until, last):
            part, moment = ("test", valid_until) if valid_until == last else ("validation", train_until)
            raise DataError(
                f"the {part} part of the time split is empty, because {occurring(moment)} of {total} "
                f"interactions have the timestamp {moment}; choose other shares or another kind of split"
            )
        return cls(train_until, valid_until, test_share, valid_share)

    def divide(self, time: Array) -> tuple[Array, Array]:
        """Two masks: in validation, in test."""
        return (time > self.train_until) & (time <= self.valid_until), time > self.valid_until

    def parameters(self, unit: str) -> dict[str, JSON]:
        return {
            "test_share": self.test_share,
            "valid_share": self.valid_share,
            "train_until": self.train_until,
            "valid_until": self.valid_until,
            **({} if unit == "s" else {"time_unit": unit}),
        }


def leave_last_out(data: Interactions) -> Split:
    """The last interaction of every user is test, the one before validation; users with fewer than 3 stay in train.

    Of a user's interactions at the same time, the one with the larger item row counts as the later.
    """
    if data.timestamp is None:
        raise without_timestamps("leave_last_out")
    count = data.user_degrees
    check_splittable(count)
    from_the_end = count[data.users] - 1 - ranks_within(data.users, data.timestamp, data.items)
    splittable = (count >= FEWEST_TO_SPLIT)[data.users]
    parts = _divided(
        data,
        splittable & (from_the_end == 1),
        splittable & (from_the_end == 0),
        kind="leave_last_out",
        notes={"users_kept_in_train": users_kept_in_train(count)},
    )
    return replace(parts, notes={**parts.notes, **_without_training(parts)})


def intervened_split(
    data: Interactions,
    *,
    seed: int = 1,
    test_share: float = 0.2,
    valid_share: float = 0.1,
    max_item_share: float = 0.5,
) -> Split:
    """A popularity-balanced test part: as if items had been shown about equally often (see `intervened`).

    Train and validation share the distribution of what is left, which is as biased as the log or more. So the test
    part asks what a method does when the habits of the log no longer hold. The item Gini of every part is among the
    notes: the test part is as balanced as its Gini is low, less so where many items are too rare to fill their places.
    """
    if not 0 < max_item_share < 1:
        raise DataError(f"max_item_share is {max_item_share}; it must lie between 0 and 1, both excluded")
    test_count, valid_count = held_out_counts(len(data), test_share, valid_share)
    in_valid, in_test = draw_intervened(
        data,
        numpy_generator(seed, "intervened_split"),
        test_count=test_count,
        valid_count=valid_count,
        max_item_share=max_item_share,
    )
    parts = _divided(
        data,
        in_valid,
        in_test,
        kind="intervened",
        parameters={
            "seed": seed,
            "test_share": test_share,
            "valid_share": valid_share,
            "max_item_share": max_item_share,
        },
    )
    return replace(parts, notes={f"item_gini_{name}": value for name, value in parts.item_gini.items()})


class Kind(NamedTuple):
    """A way to split a log, and which of the common options it takes."""

    make: Callable[..., Split]
    options: tuple[str, ...]


KINDS = {
    "random": Kind(split_per_user, ("seed",)),
    "time": Kind(split_by_time, ("test_share", "valid_share")),
    "leave_last_out": Kind(leave_last_out, ()),
    "intervened": Kind(intervened_split, ("seed", "test_share", "valid_share", "max_item_share")),
}


def split_log(data: Interactions, kind: str = "random", *, seed: int = 1, **options: float) -> Split:
    """Split a log in one of the `KINDS`. Those that draw nothing ignore the seed; other options must fit the kind."""
    instance("data", data, Interactions, FROM_FRAME)
    seed = checked_seed(seed)
    if instance("kind", kind, str) not in KINDS:
        raise DataError(unknown("kind of split", kind, KINDS))
    make, taken = KINDS[kind]
    for name in options:
        if name not in taken:
            able = ", ".join(known for known, entry in KINDS.items() if name in entry.options)
            raise DataError(f"split '{kind}' has no {name} to set (taken by: {able or 'none'}); leave it out")
    return make(data, **({"seed": seed} if "seed" in taken else {}), **options)


def carve_validation(train: Interactions, *, seed: int) -> tuple[Interactions, Interactions]:
    """Take floor(n / 8) of every user's n training interactions for validation; at least one stays in train."""
    rank = _random_ranks(train, numpy_generator(seed, "carve_validation"))
    in_valid = rank < (train.user_degrees // CARVED_SHARE)[train.users]
    if not in_valid.any():
        most = train.user_degrees.max(initial=0)
        raise DataError(
            f"no user has {CARVED_SHARE} or more training interactions (the most is {most}), "
            f"so no validation part can be carved from train; give a validation part"
        )
    return train.select(~in_valid), train.select(in_valid)


def given_split(parts: Mapping[str, Interactions], *, seed: int, protocol: Protocol) -> Split:
    """A split that came as files.

    `honest` selects on validation: the given part or, without one, 1/8 carved from train. `paper` takes the train and
    test files as they are and has no validation part.
    """
    if protocol not in ("honest", "paper"):
        raise DataError(unknown("protocol", str(protocol), ("honest", "paper")))
    for name in ("train", "test"):
        if name not in parts:
            raise DataError(f"the given split has no {name} part, found: {', '.join(parts)}; add it")
    train, valid, test, negative = parts["train"], parts.get("valid"), parts["test"], parts.get("test_negative")
    described: dict[str, JSON] = {"validation": "none" if valid is None else "given"}
    given = Split(train, valid, test, kind="given", parameters=described, test_negative=negative)
    if protocol == "paper":
        if valid is not None:
            raise DataError(
                "the paper protocol takes a train and a test part, but a validation part was given as well; use "
                "--protocol honest or remove the validation file"
            )
        return given
    before = parts.get(NOT_LIKED_BEFORE)
    if valid is not None:
        return replace(given, valid_negative=before)
    kept, carved = carve_validation(train, seed=seed)
    described = {"validation": "carved from train", "seed": seed}
    return replace(given, train=kept, valid=carved, parameters=described, valid_negative=before)


def held_out_counts(total: int, test_share: float, valid_share: float) -> tuple[int, int]:
    """ceil(test_share n) and max(1, floor(valid_share n)), in exact decimals; at least one has to be left.

    >>> held_out_counts(30, 0.1, 0.1)
    (3, 3)
    """
    for name, share in (("test_share", test_share), ("valid_share", valid_share)):
        if not 0 < share < 1:
            raise DataError(f"{name} is {share}; it must lie between 0 and 1, both excluded")
    exact_test, exact_valid = (Fraction(str(share)) * total for share in (test_share, valid_share))
    test_count, valid_count = math.ceil(exact_test), max(1, math.floor(exact_valid))
    if test_count + valid_count >= total:
        raise DataError(
            f"test_share {test_share:g} and valid_share {valid_share:g} leave nothing of {total} interactions to "
            f"train on; lower the shares or give a larger log"
        )
    return test_count, valid_count


def _divided(
    data: Interactions,
    in_valid: Array,
    in_test: Array,
    *,
    kind: str,
    parameters: Mapping[str, JSON] | None = None,
    notes: Mapping[str, int | float] | None = None,
) -> Split:
    return Split(
        train=data.select(~in_test & ~in_valid),
        valid=data.select(in_valid),
        test=data.select(in_test),
        kind=kind,
        parameters=parameters or {},
        notes=notes or {},
    )


def _without_training(parts: Split) -> dict[str, int]:
    """How many users and items occur in the later parts only."""
    held = [part for part in (parts.valid, parts.test) if part is not None]
    return {
        "users_without_training": held_out_only(parts.train.user_degrees, [part.user_degrees for part in held]),
        "items_without_training": held_out_only(parts.train.item_degrees, [part.item_degrees for part in held]),
    }


def held_out_only(trained: Array, held_out: Sequence[Array]) -> int:
    """How many rows have interactions in the later parts, but none in train."""
    return int(np.count_nonzero((trained == 0) & (sum(held_out) > 0)))


def without_timestamps(kind: str) -> DataError:
    return DataError(
        f"split '{kind}' needs timestamps and the log has none; name their column with --timestamp-column, or "
        f"choose another kind of split"
    )


def check_splittable(count: Array) -> None:
    most = count.max(initial=0)
    if most < FEWEST_TO_SPLIT:
        raise DataError(
            f"no user has {FEWEST_TO_SPLIT} or more interactions (the most is {most}), "
            f"so there is nothing to hold out; give a larger log"
        )


def _random_ranks(data: Interactions, generator: np.random.Generator) -> Array:
    """For each pair its position 0..n-1 in a random order of its user's n pairs."""
    return ranks_within(data.users, generator.random(len(data)))


def _check_same_rows(first: str, one: Interactions, second: str, other: Interactions) -> None:
    if one.user_ids != other.user_ids or one.item_ids != other.item_ids:
        raise DataError(
            f"{first} and {second} number their users or items differently; bring both to the ids of all parts with "
            f"Interactions.reindexed, using IdMap.union"
        )


def _check_disjoint(first: str, one: Interactions, second: str, other: Interactions) -> None:
    if of_one_folder(one, other):  # every pair was written to one part
        return
    _, shared, _ = np.intersect1d(one.keys, other.keys, assume_unique=True, return_indices=True)
    if len(shared):
        position = shared[:1]
        user_id = one.user_ids.external(one.users[position])[0].as_py()
        item_id = one.item_ids.external(one.items[position])[0].as_py()
        raise DataError(
            f"{first} and {second} share {len(shared)} interactions, for example user {user_id!r} with "
            f"item {item_id!r}; remove them from one of the two parts"
        )
