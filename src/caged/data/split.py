"""Train, validation and test: disjoint parts of one catalogue."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.errors import DataError, unknown
from caged.seeding import numpy_generator

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"
Protocol = Literal["honest", "paper"]

FEWEST_TO_SPLIT = 3  # interactions: one for each part
CARVED_SHARE = 8  # one in eight of a user's training interactions


class Development(NamedTuple):
    """What training may see: there is no test part to ask for."""

    train: Interactions
    valid: Interactions | None


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint parts with shared id maps; a user without training interactions still has a row.

    `kind` and `parameters` say how the split was made, `notes` what was counted meanwhile.
    """

    train: Interactions
    valid: Interactions | None
    test: Interactions | None
    kind: str
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.train) == 0:
            raise DataError("the training part is empty; a split needs at least one training interaction")
        for (first, one), (second, other) in combinations(self.parts.items(), 2):
            _check_same_rows(first, one, second, other)
            _check_disjoint(first, one, second, other)

    @property
    def parts(self) -> dict[str, Interactions]:
        """The parts that exist, by name."""
        named = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: part for name, part in named.items() if part is not None}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of one `part<TAB>fingerprint of the part<LF>` line for each of train, valid, test that exists."""
        lines = "".join(f"{name}\t{part.fingerprint}\n" for name, part in self.parts.items())
        return hashlib.sha256(lines.encode()).hexdigest()

    def development(self) -> Development:
        return Development(self.train, self.valid)


def split(data: Interactions, *, seed: int = 1) -> Split:
    """Per-user random 7:1:2.

    Of a user's n >= 3 interactions ceil(n / 5) go to test and max(1, floor(n / 10)) to validation; users with fewer
    stay in train. The draw depends on the pairs and the seed, not on the order of the file.
    """
    count = data.user_degrees
    splittable = count >= FEWEST_TO_SPLIT
    if not splittable.any():
        raise DataError(
            f"no user has {FEWEST_TO_SPLIT} or more interactions (the most is {count.max(initial=0)}), "
            f"so there is nothing to hold out; give a larger log"
        )
    test_count = np.where(splittable, (count + 4) // 5, 0)
    valid_count = np.where(splittable, np.maximum(1, count // 10), 0)
    rank = _random_ranks(data, numpy_generator(seed, "split"))
    in_test = rank < test_count[data.users]
    in_valid = ~in_test & (rank < (test_count + valid_count)[data.users])
    return Split(
        train=data.select(~in_test & ~in_valid),
        valid=data.select(in_valid),
        test=data.select(in_test),
        kind="random",
        parameters={"seed": seed, "shares": [7, 1, 2]},
        notes={"users_kept_in_train": int(np.count_nonzero(~splittable & (count > 0)))},
    )


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
    train, valid, test = parts["train"], parts.get("valid"), parts["test"]
    given = Split(train, valid, test, kind="given", parameters={"validation": "none" if valid is None else "given"})
    if protocol == "paper":
        if valid is not None:
            raise DataError(
                "the paper protocol takes a train and a test part, but a validation part was given as well; use "
                "--protocol honest or remove the validation file"
            )
        return given
    if valid is not None:
        return given
    kept, carved = carve_validation(train, seed=seed)
    return Split(kept, carved, test, kind="given", parameters={"validation": "carved from train", "seed": seed})


def _random_ranks(data: Interactions, generator: np.random.Generator) -> Array:
    """For each pair its position 0..n-1 in a random order of its user's n pairs."""
    shuffled = np.lexsort((generator.random(len(data)), data.users))
    ranks = np.empty(len(data), dtype=np.int64)
    ranks[shuffled] = np.arange(len(data)) - data.user_offsets[data.users]  # users are sorted already
    return ranks


def _check_same_rows(first: str, one: Interactions, second: str, other: Interactions) -> None:
    if one.user_ids != other.user_ids or one.item_ids != other.item_ids:
        raise DataError(
            f"{first} and {second} number their users or items differently; bring both to the ids of all parts with "
            f"Interactions.reindexed, using IdMap.union"
        )


def _check_disjoint(first: str, one: Interactions, second: str, other: Interactions) -> None:
    _, shared, _ = np.intersect1d(one.keys, other.keys, assume_unique=True, return_indices=True)
    if len(shared):
        position = shared[:1]
        user_id = one.user_ids.external(one.users[position])[0].as_py()
        item_id = one.item_ids.external(one.items[position])[0].as_py()
        raise DataError(
            f"{first} and {second} share {len(shared)} interactions, for example user {user_id!r} with "
            f"item {item_id!r}; remove them from one of the two parts"
        )
