"""Every kind of split against slow, literal versions: exact proportions, disjointness, fingerprints."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caged.data import (
    KINDS,
    Development,
    IdMap,
    Interactions,
    Split,
    carve_validation,
    given_split,
    leave_last_out,
    split,
    split_by_time,
    split_log,
)
from caged.data.times import TimeUnit
from caged.errors import DataError
from tests.data.splits.logs import Pair, assignment, logs, pairs_of, random_log, shuffled

# ---------------------------------------------------------------- all kinds


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_partition_that_ignores_the_order_of_the_file(kind: str) -> None:
    data = random_log()
    parts = split_log(data, kind, seed=4)
    assert parts.kind == kind
    assert all(len(part) for part in parts.parts.values())
    assert list(parts.parts) == ["train", "valid", "test"]
    assert sum(len(part) for part in parts.parts.values()) == len(data)
    assert set(assignment(parts)) == set(pairs_of(data))
    again = split_log(shuffled(data), kind, seed=4)
    assert again.fingerprint == parts.fingerprint
    assert again.parameters == parts.parameters
    assert again.notes == parts.notes


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_matters_where_something_is_drawn(kind: str) -> None:
    data = random_log()
    differ = split_log(data, kind, seed=1).fingerprint != split_log(data, kind, seed=2).fingerprint
    assert differ == (kind in {"random", "intervened"})


@pytest.mark.parametrize("kind", KINDS)
def test_values_travel_with_their_pair(kind: str) -> None:
    data = random_log()
    data = Interactions.build(
        data.users,
        data.items,
        user_ids=data.user_ids,
        item_ids=data.item_ids,
        timestamp=data.timestamp,
        columns={"mark": data.keys},
    )
    for part in split_log(data, kind).parts.values():
        assert np.array_equal(part.columns["mark"], part.keys)


def test_unknown_kinds_and_options_that_do_not_fit() -> None:
    data = random_log()
    with pytest.raises(DataError, match=r"unknown kind of split 'tmie'; known: .*; did you mean 'time'"):
        split_log(data, "tmie")
    with pytest.raises(DataError, match=r"'random' has no test_share to set \(taken by: time, intervened\)"):
        split_log(data, "random", test_share=0.3)
    assert split_log(data, "time", test_share=0.3).parameters["test_share"] == 0.3


# ---------------------------------------------------------------- time


def slow_time_split(data: Interactions, test_share: str, valid_share: str) -> dict[Pair, str]:
    """Moments one by one, oldest first: a moment is train until train has its share, then validation, then test."""
    total = len(data)
    test = math.ceil(Fraction(test_share) * total)
    valid = max(1, math.floor(Fraction(valid_share) * total))
    assert data.timestamp is not None
    by_moment = defaultdict(list)
    for pair, moment in zip(pairs_of(data), data.timestamp.tolist(), strict=True):
        by_moment[moment].append(pair)
    done, assigned = 0, {}
    for moment in sorted(by_moment):
        part = "train" if done < total - test - valid else "valid" if done < total - test else "test"
        assigned.update(dict.fromkeys(by_moment[moment], part))
        done += len(by_moment[moment])
    return assigned


@settings(max_examples=200)
@given(logs(), st.sampled_from([("0.2", "0.1"), ("0.3", "0.3"), ("0.05", "0.5")]))
def test_time_split_is_the_slow_one(data: Interactions, shares: tuple[str, str]) -> None:
    slow = slow_time_split(data, *shares)
    options = {"test_share": float(shares[0]), "valid_share": float(shares[1])}
    if set(slow.values()) != {"train", "valid", "test"}:
        with pytest.raises(DataError, match="part of the time split is empty"):
            split_by_time(data, **options)
        return
    assert assignment(split_by_time(data, **options)) == slow


def test_time_split_by_hand() -> None:
    """10 rows: cuts before the last 2 and before the 1 ahead; the tie at time 6 pulls the 8th row into validation."""
    data = Interactions.from_ids(
        ["a", "b", "a", "b", "a", "b", "a", "c", "c", "a"],
        [1, 1, 2, 2, 3, 3, 4, 4, 5, 6],
        timestamp=np.array([0, 1, 2, 3, 3, 4, 5, 6, 6, 9]),
    )
    parts = split_by_time(data)
    assert pairs_of(parts.valid) == [(2, 3), (2, 4)]
    assert pairs_of(parts.test) == [(0, 5)]
    assert parts.parameters == {"test_share": 0.2, "valid_share": 0.1, "train_until": 5, "valid_until": 6}
    assert parts.notes == {"users_without_training": 1, "items_without_training": 2}
    assert parts.train.user_count == 3


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 9, 9, 9], "test part .* 3 of 10 interactions have the timestamp 9"),
        ([1, 2, 3, 4, 5, 6, 7, 7, 9, 9], "validation part .* 2 of 10 interactions have the timestamp 7"),
        ([5] * 10, "test part .* 10 of 10"),
    ],
)
def test_time_split_without_a_later_moment(time: list[int], words: str) -> None:
    data = Interactions.from_ids(list(range(10)), [0, 1] * 5, timestamp=np.array(time))
    with pytest.raises(DataError, match=words):
        split_by_time(data)


@pytest.mark.parametrize("kind", ["time", "leave_last_out"])
def test_times_are_needed(kind: str) -> None:
    with pytest.raises(DataError, match=f"'{kind}' needs timestamps and the log has none; name .*--timestamp-column"):
        split_log(Interactions.from_ids([1, 1, 1, 2], [1, 2, 3, 1]), kind)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"test_share": 0.0}, "test_share is 0.0"),
        ({"valid_share": 1.0}, "valid_share is 1.0"),
        ({"test_share": float("nan")}, "test_share is nan"),
        ({"test_share": 0.6, "valid_share": 0.4}, "leave nothing of"),
    ],
)
@pytest.mark.parametrize("kind", ["time", "intervened"])
def test_shares_out_of_range(kind: str, options: dict[str, float], words: str) -> None:
    with pytest.raises(DataError, match=words):
        split_log(random_log(), kind, **options)


# ---------------------------------------------------------------- leave last out


def slow_leave_last_out(data: Interactions) -> dict[Pair, str]:
    assert data.timestamp is not None
    of_user = defaultdict(list)
    for (user, item), moment in zip(pairs_of(data), data.timestamp.tolist(), strict=True):
        of_user[user].append((moment, item))
    assigned = {}
    for user, seen in of_user.items():
        names = ["train"] * len(seen)
        if len(seen) >= 3:
            names[-2:] = ["valid", "test"]
        assigned.update({(user, item): name for (_, item), name in zip(sorted(seen), names, strict=True)})
    return assigned


@settings(max_examples=200)
@given(logs())
def test_leave_last_out_is_the_slow_one(data: Interactions) -> None:
    slow = slow_leave_last_out(data)
    if "test" not in slow.values():
        with pytest.raises(DataError, match="no user has 3 or more interactions"):
            leave_last_out(data)
        return
    parts = leave_last_out(data)
    assert assignment(parts) == slow
    assert parts.notes["users_kept_in_train"] == np.count_nonzero(data.user_degrees < 3)
    trained = {item for (_, item), name in slow.items() if name == "train"}
    assert parts.notes["items_without_training"] == data.item_count - len(trained)


def with_degrees(degrees: list[int]) -> Interactions:
    """User u has `degrees[u]` items, the first ones of a common catalogue."""
    users = np.repeat(np.arange(len(degrees)), degrees)
    items = np.concatenate([np.arange(degree) for degree in degrees])
    return Interactions.build(users, items, user_ids=IdMap.range(len(degrees)), item_ids=IdMap.range(max(2, *degrees)))


def pair_set(part: Interactions | None) -> set[tuple[int, int]]:
    assert part is not None
    return set(zip(part.users.tolist(), part.items.tolist(), strict=True))


def of_keys(*keys: int) -> Interactions:
    """Pairs of 4 users and 10 items; key 23 is user 2 with item 3."""
    users, items = np.divmod(np.array(keys, dtype=np.int64), 10)
    return Interactions.build(users, items, user_ids=IdMap.range(4), item_ids=IdMap.range(10))


def test_what_was_not_liked_before_the_test_may_be_in_it_but_in_nothing_before() -> None:
    train, valid, test, shown = of_keys(1, 2), of_keys(3), of_keys(4), of_keys(4, 5)
    given = {"train": train, "valid": valid, "test": test, "valid_negative": shown}
    parts = given_split(given, seed=1, protocol="honest")
    assert parts.valid_negative is shown
    assert list(parts.parts) == ["train", "valid", "test", "valid_negative"]
    for before in ("train", "valid"):
        with pytest.raises(DataError, match=f"{before} and valid_negative share 1 interactions"):
            given_split({**given, before: of_keys(5)}, seed=1, protocol="honest")
    with pytest.raises(DataError, match="no valid part"):
        Split(train, None, test, kind="given", valid_negative=shown)


# ---------------------------------------------------------------- random 7:1:2


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_what_comes_last_within_a_second_is_the_test(unit: TimeUnit) -> None:
    """The item rows run against the time, so a cut to seconds would put the first of each user into test."""
    users, items = np.repeat([0, 1], 4), np.tile([3, 2, 1, 0], 2)
    time = np.tile([10, 11, 12, 13], 2)
    data = Interactions.from_ids(users, items, timestamp=time, timestamp_unit=unit)
    last = leave_last_out(data)
    assert pairs_of(last.test) == [(0, 0), (1, 0)]
    assert pairs_of(last.valid) == [(0, 1), (1, 1)]
    by_time = split_by_time(data, test_share=0.25, valid_share=0.25)
    assert pairs_of(by_time.test) == [(0, 0), (1, 0)]
    assert by_time.parameters["valid_until"] == 12
    assert by_time.parameters["time_unit"] == unit


def test_every_user_is_split_in_the_exact_proportions() -> None:
    """Against a loop in exact fractions, for every number of interactions up to 130."""
    degrees = list(range(131))
    parts = split(with_degrees(degrees), seed=3)
    assert parts.valid is not None
    assert parts.test is not None
    for user, count in enumerate(degrees):
        test = math.ceil(Fraction(2, 10) * count) if count >= 3 else 0
        valid = max(1, math.floor(Fraction(1, 10) * count)) if count >= 3 else 0
        seen = [int(part.user_degrees[user]) for part in (parts.train, parts.valid, parts.test)]
        assert seen == [count - valid - test, valid, test]
        assert count == 0 or seen[0] >= 1
    assert parts.notes == {"users_kept_in_train": 2}
    assert (parts.kind, parts.parameters) == ("random", {"seed": 3, "shares": [7, 1, 2]})


@settings(max_examples=50)
@given(st.lists(st.integers(0, 30), min_size=2).filter(lambda degrees: max(degrees) >= 3), st.integers(0, 2**31))
def test_the_parts_are_a_partition(degrees: list[int], seed: int) -> None:
    data = with_degrees(degrees)
    parts = split(data, seed=seed)
    sets = [pair_set(part) for part in (parts.train, parts.valid, parts.test)]
    assert sum(map(len, sets)) == len(data)
    assert set.union(*sets) == pair_set(data)


def test_the_order_of_the_file_does_not_matter() -> None:
    generator = np.random.default_rng(5)
    users, items = generator.integers(0, 40, 600), generator.integers(0, 90, 600)
    rating = users * 100.0 + items
    shuffled = generator.permutation(600)
    one = split(Interactions.from_ids(users, items, rating=rating))
    other = split(Interactions.from_ids(users[shuffled], items[shuffled], rating=rating[shuffled]))
    assert one.fingerprint == other.fingerprint
    assert one.test is not None
    assert other.test is not None
    assert one.test.to_arrow().equals(other.test.to_arrow())


def test_the_seed_decides_and_values_travel_with_their_pair() -> None:
    data = with_degrees([50] * 20)
    data = Interactions.build(
        data.users, data.items, user_ids=data.user_ids, item_ids=data.item_ids, timestamp=data.users * 50 + data.items
    )
    parts = split(data, seed=1)
    assert parts.fingerprint == split(data, seed=1).fingerprint != split(data, seed=2).fingerprint
    assert parts.test is not None
    assert parts.test.timestamp is not None
    assert np.array_equal(parts.test.timestamp, parts.test.users * 50 + parts.test.items)


def test_every_interaction_is_equally_likely_in_each_part() -> None:
    """20 items, 4000 users: each item is in test with p = 1/5, so 800 +- 4 standard deviations of 25."""
    parts = split(with_degrees([20] * 4000))
    assert parts.test is not None
    assert parts.valid is not None
    assert np.all(np.abs(parts.test.item_degrees - 800) < 102)
    assert np.all(np.abs(parts.valid.item_degrees - 400) < 77)


def test_users_with_too_few_interactions_everywhere() -> None:
    with pytest.raises(DataError, match=r"no user has 3 or more interactions \(the most is 2\)"):
        split(with_degrees([2, 2, 1]))


# ---------------------------------------------------------------- validation out of train


def test_carving_takes_an_eighth_of_every_user() -> None:
    degrees = list(range(1, 70))
    data = with_degrees(degrees)
    train, valid = carve_validation(data, seed=1)
    assert valid.user_degrees.tolist() == [count // 8 for count in degrees]
    assert train.user_degrees.min() == 1
    assert pair_set(train) | pair_set(valid) == pair_set(data)
    assert not pair_set(train) & pair_set(valid)


def test_carving_is_reproducible_and_depends_on_the_seed() -> None:
    data = with_degrees([40] * 10)
    assert carve_validation(data, seed=1)[1].fingerprint == carve_validation(data, seed=1)[1].fingerprint
    assert carve_validation(data, seed=1)[1].fingerprint != carve_validation(data, seed=2)[1].fingerprint


def test_carving_nothing_is_an_error() -> None:
    with pytest.raises(DataError, match=r"no user has 8 or more training interactions \(the most is 7\)"):
        carve_validation(with_degrees([7, 7]), seed=1)


# ---------------------------------------------------------------- given splits


def test_honest_uses_the_given_validation_part() -> None:
    parts = {"train": of_keys(1, 11), "valid": of_keys(2), "test": of_keys(3, 31)}
    made = given_split(parts, seed=1, protocol="honest")
    assert made.train is parts["train"]
    assert made.valid is parts["valid"]
    assert made.test is parts["test"]
    assert (made.kind, made.parameters) == ("given", {"validation": "given"})
    assert made.train.user_degrees.tolist() == [1, 1, 0, 0]  # user 3 occurs in test only and keeps a row


def test_honest_carves_validation_from_train() -> None:
    train, test = of_keys(*range(8)), of_keys(8, 13)
    made = given_split({"train": train, "test": test}, seed=4, protocol="honest")
    kept, carved = carve_validation(train, seed=4)
    assert made.valid is not None
    assert (made.train.fingerprint, made.valid.fingerprint) == (kept.fingerprint, carved.fingerprint)
    assert made.test is test
    assert made.parameters == {"validation": "carved from train", "seed": 4}


def test_paper_takes_the_two_files_as_they_are() -> None:
    parts = {"train": of_keys(1, 11), "test": of_keys(3)}
    made = given_split(parts, seed=1, protocol="paper")
    assert (made.train, made.valid, made.test) == (parts["train"], None, parts["test"])
    assert made.parameters == {"validation": "none"}
    with pytest.raises(DataError, match="--protocol honest"):
        given_split({**parts, "valid": of_keys(5)}, seed=1, protocol="paper")


@pytest.mark.parametrize("protocol", ["honest", "paper"])
def test_overlap_of_given_parts_is_an_error(protocol: str) -> None:
    parts = {"train": of_keys(*range(9), 23), "test": of_keys(2, 23)}
    with pytest.raises(DataError, match="train and test share 2 interactions, for example user 0 with item 2; remove"):
        given_split(parts, seed=1, protocol=protocol)  # type: ignore[arg-type]


def test_incomplete_or_unknown_requests() -> None:
    with pytest.raises(DataError, match="no test part, found: train"):
        given_split({"train": of_keys(1)}, seed=1, protocol="honest")
    with pytest.raises(DataError, match="unknown protocol 'fair'"):
        given_split({"train": of_keys(1), "test": of_keys(2)}, seed=1, protocol="fair")  # type: ignore[arg-type]


# ---------------------------------------------------------------- the Split itself


def test_development_has_no_test_part() -> None:
    made = Split(of_keys(1), of_keys(2), of_keys(3), kind="given")
    assert made.development() == Development(made.train, made.valid)
    assert Development._fields == ("train", "valid")


@pytest.mark.parametrize(
    ("train", "valid", "test", "names"),
    [
        ((1, 2), (2,), (3,), "train and valid"),
        ((1,), (3,), (3,), "valid and test"),
        ((1,), None, (1,), "train and test"),
    ],
)
def test_any_two_parts_must_be_disjoint(
    train: tuple[int, ...], valid: tuple[int, ...] | None, test: tuple[int, ...], names: str
) -> None:
    with pytest.raises(DataError, match=f"{names} share 1 interactions"):
        Split(of_keys(*train), None if valid is None else of_keys(*valid), of_keys(*test), kind="given")


@pytest.mark.parametrize(("negative", "other"), [((1,), "train"), ((2,), "valid"), ((3,), "test")])
def test_what_was_not_liked_is_in_no_other_part(negative: tuple[int, ...], other: str) -> None:
    with pytest.raises(DataError, match=f"{other} and test_negative share 1 interactions"):
        Split(of_keys(1), of_keys(2), of_keys(3), kind="given", test_negative=of_keys(4, *negative))


def test_what_was_not_liked_needs_a_test() -> None:
    with pytest.raises(DataError, match="a test_negative part and no test part"):
        Split(of_keys(1), of_keys(2), None, kind="given", test_negative=of_keys(4))


def test_what_was_not_liked_is_a_part_and_in_the_fingerprint() -> None:
    with_it = Split(of_keys(1), None, of_keys(3), kind="given", test_negative=of_keys(4))
    assert list(with_it.parts) == ["train", "test", "test_negative"]
    prints = {
        Split(of_keys(1), None, of_keys(3), kind="given", test_negative=negative).fingerprint
        for negative in (None, of_keys(4), of_keys(5))
    }
    assert len(prints) == 3


@pytest.mark.parametrize("valid", [None, (2,)])
def test_a_given_split_keeps_what_was_not_liked(valid: tuple[int, ...] | None) -> None:
    train = Interactions.from_ids([0] * 8, range(8))
    rows = {"user_ids": train.user_ids, "item_ids": IdMap.range(12)}
    parts = {
        "train": train.reindexed(**rows),
        "test": Interactions.build(np.array([0]), np.array([9]), **rows),
        "test_negative": Interactions.build(np.array([0]), np.array([10]), **rows),
    }
    if valid is not None:
        parts["valid"] = Interactions.build(np.array([0]), np.array([11]), **rows)
    made = given_split(parts, seed=1, protocol="honest")
    assert made.test_negative is parts["test_negative"]
    assert len(made.valid or ()) == 1


def test_an_example_of_overlap_is_in_external_ids() -> None:
    log = Interactions.from_ids(["ann", "bob"], ["tea", "milk"])
    with pytest.raises(DataError, match="user 'ann' with item 'tea'"):
        Split(log, None, log.select(np.array([True, False])), kind="given")


def test_parts_must_share_their_rows() -> None:
    with pytest.raises(DataError, match="number their users or items differently"):
        Split(of_keys(1), None, Interactions.from_ids([1, 2], [3, 4]), kind="given")


def test_train_must_not_be_empty() -> None:
    with pytest.raises(DataError, match="training part is empty"):
        Split(of_keys(), None, of_keys(1), kind="given")


def test_fingerprint_is_the_hash_of_the_parts() -> None:
    """By hand: sha256 of `train<TAB>sha256("0\\t1\\n1\\t2\\n")<LF>test<TAB>sha256("0\\t3\\n")<LF>`."""
    made = Split(of_keys(1, 12), None, of_keys(3), kind="given", parameters={"seed": 1})
    train = hashlib.sha256(b"0\t1\n1\t2\n").hexdigest()
    test = hashlib.sha256(b"0\t3\n").hexdigest()
    assert made.fingerprint == hashlib.sha256(f"train\t{train}\ntest\t{test}\n".encode()).hexdigest()
    assert made.fingerprint == "499d8eb63d95c1d63cf80ba53ed63e71a17a5a2d574f886c6e0e60a2c47a3270"
    assert made.fingerprint == Split(of_keys(1, 12), None, of_keys(3), kind="other").fingerprint
    assert made.fingerprint != Split(of_keys(1, 12), of_keys(3), None, kind="given").fingerprint
