"""The kinds of splits against slow, literal versions; validation on marked traffic; splits as folders."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caged.data import (
    KINDS,
    Columns,
    Interactions,
    Split,
    carve_validation,
    given_split,
    intervened_split,
    leave_last_out,
    load,
    split,
    split_by_time,
    split_log,
    validate_on,
)
from caged.data.popularity import gini
from caged.data.source import Source
from caged.data.splits.draws import deal
from caged.data.splits.folder import write_split
from caged.errors import ConfigError, DataError, RunError
from caged.runs.protocols import HONEST, PAPER, check_split_options, split_source
from caged.seeding import numpy_generator

Pair = tuple[int, int]


def pairs_of(part: Interactions | None) -> list[Pair]:
    assert part is not None
    return list(zip(part.users.tolist(), part.items.tolist(), strict=True))


def assignment(parts: Split) -> dict[Pair, str]:
    """Pair -> part; a pair in two parts or in none is a failure where the number of pairs is compared."""
    return {pair: name for name, part in parts.parts.items() for pair in pairs_of(part)}


@st.composite
def logs(draw: st.DrawFn, *, smallest: int = 4) -> Interactions:
    """Logs with many equal times; the ids are the rows, since all that are drawn occur."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), min_size=smallest, max_size=60, unique=True))
    time = draw(st.lists(st.integers(-3, 12), min_size=len(pairs), max_size=len(pairs)))
    return Interactions.from_ids([u for u, _ in pairs], [i for _, i in pairs], timestamp=np.array(time))


def random_log(seed: int = 3, users: int = 60, items: int = 45, count: int = 900) -> Interactions:
    """Item popularity falls with its number."""
    generator = np.random.default_rng(seed)
    drawn = (generator.random(count) ** 2 * items).astype(int)
    return Interactions.from_ids(
        generator.integers(0, users, count), drawn, timestamp=generator.integers(0, 500, count)
    )


def shuffled(data: Interactions, seed: int = 9) -> Interactions:
    """The same log from a file whose rows stand in another order."""
    order = np.random.default_rng(seed).permutation(len(data))
    table = data.to_arrow().take(order)
    return Interactions.from_ids(table["user_id"], table["item_id"], timestamp=table["timestamp"].to_numpy())


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


# ---------------------------------------------------------------- intervened


def slow_deal(places: int, room: list[int], luck: list[float]) -> list[int]:
    dealt = [0] * len(room)
    while places:
        takers = [i for i in range(len(room)) if dealt[i] < room[i]]
        for i in sorted(takers, key=lambda i: luck[i])[:places]:
            dealt[i] += 1
        places -= min(places, len(takers))
    return dealt


@settings(max_examples=200)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.data())
def test_dealing_is_the_slow_one(room: list[int], data: st.DataObject) -> None:
    places = data.draw(st.integers(0, sum(room)))
    luck = np.random.default_rng(places).random(len(room))
    assert deal(places, np.array(room), luck).tolist() == slow_deal(places, room, luck.tolist())


def slow_intervened(data: Interactions, seed: int, test: int, valid: int, most: Fraction) -> dict[Pair, str] | None:
    """The four rules one pair at a time, with the random numbers of the fast version; None if it does not fit."""
    generator = numpy_generator(seed, "intervened_split")
    pairs = pairs_of(data)
    kept = set()
    for side in (0, 1):
        first: dict[int, tuple[float, Pair]] = {}
        for pair, number in zip(pairs, generator.random(len(pairs)), strict=True):
            first[pair[side]] = min(first.get(pair[side], (2.0, pair)), (number, pair))
        kept |= {pair for _, pair in first.values()}
    free = [pair for pair in pairs if pair not in kept]
    degree = [sum(item == i for _, item in pairs) for i in range(data.item_count)]
    room = [min(int(most * degree[i]), sum(item == i for _, item in free)) for i in range(data.item_count)]
    if sum(room) < test or len(free) < test + valid:
        return None
    places = slow_deal(test, room, generator.random(data.item_count).tolist())
    assigned = dict.fromkeys(pairs, "train")
    order = sorted(zip(generator.random(len(free)), free, strict=True))
    for _, (user, item) in order:
        if places[item]:
            places[item] -= 1
            assigned[user, item] = "test"
    rest = [pair for pair in free if assigned[pair] == "train"]
    for _, pair in sorted(zip(generator.random(len(rest)), rest, strict=True))[:valid]:
        assigned[pair] = "valid"
    return assigned


@settings(max_examples=100)
@given(logs(smallest=30), st.integers(0, 99), st.sampled_from(["0.2", "0.5", "0.7"]))
def test_intervened_split_is_the_slow_one(data: Interactions, seed: int, most: str) -> None:
    test, valid = math.ceil(Fraction(15, 100) * len(data)), max(1, len(data) // 10)
    options = {"test_share": 0.15, "valid_share": 0.1, "max_item_share": float(most)}
    slow = slow_intervened(data, seed, test, valid, Fraction(most))
    if slow is None:
        with pytest.raises(DataError, match="cannot be taken from"):
            intervened_split(data, seed=seed, **options)
        return
    assert assignment(intervened_split(data, seed=seed, **options)) == slow


def test_intervened_test_is_balanced_and_train_knows_everybody() -> None:
    data = random_log(count=6000, users=150, items=100)
    parts = intervened_split(data, seed=2)
    assert parts.test is not None
    assert parts.valid is not None
    assert len(parts.test) == math.ceil(0.2 * len(data))
    assert len(parts.valid) == len(data) // 10
    assert parts.train.user_degrees.min() >= 1
    assert parts.train.item_degrees.min() >= 1
    assert np.all(2 * parts.test.item_degrees <= data.item_degrees)
    naturally = split(data).item_gini
    assert parts.item_gini["test"] < 0.5 * naturally["test"]
    assert parts.item_gini["valid"] > naturally["valid"] - 0.05
    assert parts.notes == {
        f"item_gini_{name}": gini(np.bincount(part.items, minlength=100)) for name, part in parts.parts.items()
    }
    assert parts.parameters == {"seed": 2, "test_share": 0.2, "valid_share": 0.1, "max_item_share": 0.5}


def test_intervened_split_that_does_not_fit() -> None:
    data = random_log()
    with pytest.raises(DataError, match=r"balanced test part of \d+ .* \(max_item_share 0.1 of each item\); lower"):
        intervened_split(data, test_share=0.4, max_item_share=0.1)
    with pytest.raises(DataError, match=r"max_item_share is 1.5"):
        intervened_split(data, max_item_share=1.5)


# ---------------------------------------------------------------- validation on marked traffic


def marked_log(marks: Any = None, count: int = 600) -> Interactions:
    generator = np.random.default_rng(12)
    users, items = generator.integers(0, 30, count), generator.integers(0, 80, count)
    source = np.array(["popular", "model", "explore"], dtype=object)[generator.integers(0, 3, count)]
    columns = {"source": source if marks is None else np.asarray(marks)[np.arange(count) % len(marks)]}
    return Interactions.from_ids(users, items, columns=columns, timestamp=np.arange(count), rating=users + items / 100)


def marks_by_pair(data: Interactions) -> dict[Pair, object]:
    return dict(zip(pairs_of(data), data.columns["source"].tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_validation_keeps_the_marked_candidates_and_returns_the_others(kind: str) -> None:
    data = marked_log()
    usual = split_log(data, kind, seed=3)
    chosen = validate_on(usual, "source=explore")
    marks = marks_by_pair(data)
    assert pairs_of(chosen.valid) == [pair for pair in pairs_of(usual.valid) if marks[pair] == "explore"]
    assert assignment(chosen).keys() == set(pairs_of(data))
    assert chosen.test is usual.test
    for part in chosen.parts.values():  # what returned to train brought its values along
        assert marks_by_pair(part) == {pair: marks[pair] for pair in pairs_of(part)}
        assert part.rating is not None
        assert np.allclose(part.rating, data.rating[np.searchsorted(data.keys, part.keys)])  # type: ignore[index]
    candidates, kept = len(pairs_of(usual.valid)), len(pairs_of(chosen.valid))
    assert 0 < kept < candidates
    assert chosen.parameters == {**usual.parameters, "validate_on": "source=explore"}
    assert chosen.notes == {
        **usual.notes,
        "validation_candidates": candidates,
        "validation_returned_to_train": candidates - kept,
    }


def test_validation_carved_from_a_given_train_part() -> None:
    data = marked_log()
    test = data.select(data.items % 7 == 0)
    train = data.select(data.items % 7 != 0)
    chosen = validate_on(given_split({"train": train, "test": test}, seed=5, protocol="honest"), "source=model")
    _, carved = carve_validation(train, seed=5)
    marks = marks_by_pair(data)
    assert pairs_of(chosen.valid) == [pair for pair in pairs_of(carved) if marks[pair] == "model"]
    assert len(chosen.train) + len(pairs_of(chosen.valid)) == len(train)
    assert chosen.test is test


@pytest.mark.parametrize(
    ("marks", "value", "expected"),
    [
        ([0, 1, 2], "1", 1),
        ([0.0, 1.5, np.nan], "1.5", 1.5),
        ([0.0, 1.0, np.nan], "1", 1.0),
        ([True, False], "true", True),
        (np.array(["a=b", None, "c"], dtype=object), "a=b", "a=b"),
    ],
)
def test_marks_of_any_type_are_compared_as_text(marks: Any, value: str, expected: object) -> None:
    chosen = validate_on(split(marked_log(marks)), f"source={value}")
    assert chosen.valid is not None
    assert set(chosen.valid.columns["source"].tolist()) == {expected}


def test_marks_that_do_not_occur() -> None:
    parts = split(marked_log())
    with pytest.raises(
        DataError, match="no interaction has source=explor, values found: 'explore', 'model', 'popular'"
    ):
        validate_on(parts, "source=explor")
    with pytest.raises(DataError, match=r"column 'sauce' was not read with the log \(carried: 'source'\)"):
        validate_on(parts, "sauce=explore")
    with pytest.raises(DataError, match=r"'0', '1', '10', .*, \.\.\.; choose"):
        validate_on(split(marked_log(np.arange(40))), "source=x")
    for text in ("source", "=explore", "source=", ""):
        with pytest.raises(ConfigError, match="write it as COLUMN=VALUE"):
            validate_on(parts, text)
    with pytest.raises(DataError, match="no validation part"):
        validate_on(Split(parts.train, None, parts.test, kind="given"), "source=explore")


def test_marks_in_train_only_or_in_test_only() -> None:
    """The value is looked for where the method is developed; that test has it does not count."""
    data = marked_log()
    usual = split(data)
    assert usual.valid is not None
    assert usual.test is not None

    def marked_at(position: int) -> Split:
        source = np.array(["other"] * len(data), dtype=object)
        source[position] = "rare"
        again = Interactions.build(
            data.users, data.items, user_ids=data.user_ids, item_ids=data.item_ids, columns={"source": source}
        )
        return split(again)

    in_train = int(np.searchsorted(data.keys, usual.train.keys[0]))
    with pytest.raises(DataError, match=r"none of the .* held out for validation has source=rare, while train has 1"):
        validate_on(marked_at(in_train), "source=rare")
    in_test = int(np.searchsorted(data.keys, usual.test.keys[0]))
    with pytest.raises(DataError, match="no interaction has source=rare, values found: 'other'"):
        validate_on(marked_at(in_test), "source=rare")


# ---------------------------------------------------------------- protocols


def test_honest_splits_a_log_as_asked() -> None:
    data = marked_log()
    source = Source("log", Path("log.csv"), log=data)
    for kind in KINDS:
        made = split_source(source, HONEST, 2, kind=kind)
        assert made.fingerprint == split_log(data, kind, seed=2).fingerprint
        chosen = split_source(source, HONEST, 2, kind=kind, mark="source=explore")
        assert chosen.fingerprint == validate_on(made, "source=explore").fingerprint
    assert split_source(source, HONEST, 2).fingerprint == split(data, seed=2).fingerprint


def test_a_split_that_is_there_is_not_split_again() -> None:
    data = marked_log()
    parts = {"train": data.select(data.items % 7 != 0), "test": data.select(data.items % 7 == 0)}
    source = Source("folder", Path("folder"), parts=parts)
    with pytest.raises(DataError, match=r"data.split is 'time', but 'folder' is split into train, test already"):
        split_source(source, HONEST, 1, kind="time")
    with pytest.raises(ConfigError, match=r"data.split is 'time', but protocol 'paper' fixes the split"):
        check_split_options(PAPER, "time", None)
    with pytest.raises(ConfigError, match=r"data.validate_on is 'source=explore', but protocol 'paper'"):
        check_split_options(PAPER, "random", "source=explore")


# ---------------------------------------------------------------- folders


@pytest.mark.parametrize(
    "name",
    [
        lambda number: int(number) * 3,
        lambda number: f"{number:03d}",  # text that looks like numbers
        lambda number: f'bücher,\n"{number}" 🛒',
    ],
)
def test_a_folder_gives_back_the_same_split(name: Any, tmp_path: Path) -> None:
    log = marked_log()
    data = Interactions.from_ids(
        [name(user) for user in log.users],
        [name(item) for item in log.items],
        timestamp=log.timestamp,
        rating=log.rating,
        columns={"source": log.columns["source"]},
    )
    made = split_by_time(data)
    manifest = write_split(made, tmp_path / "deep" / "split", origin={"source": "log.csv"})
    read = load(tmp_path / "deep" / "split", columns=Columns(keep=("source",))).parts
    assert read is not None
    again = given_split(read, seed=1, protocol="honest")
    assert again.fingerprint == made.fingerprint == manifest["split_fingerprint"]
    for part, wanted in zip(again.parts.values(), made.parts.values(), strict=True):
        assert part.to_arrow().equals(wanted.to_arrow())
    assert json.loads((tmp_path / "deep" / "split" / "manifest.json").read_text()) == {
        "format": 1,
        "kind": "time",
        "parameters": dict(made.parameters),
        "notes": dict(made.notes),
        "users": data.user_count,
        "items": data.item_count,
        "interactions": {part: len(content) for part, content in made.parts.items()},
        "item_gini": made.item_gini,
        "fingerprints": {part: content.fingerprint for part, content in made.parts.items()},
        "split_fingerprint": made.fingerprint,
        "origin": {"source": "log.csv"},
    }
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        "train.parquet",
        "valid.parquet",
        "test.parquet",
        "manifest.json",
    }


def test_a_failing_disk_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = pq.write_table

    def failing(table: Any, path: Path, **options: Any) -> None:
        if path.name == "test.parquet":
            raise OSError(28, "No space left on device")
        write(table, path, **options)

    monkeypatch.setattr(pq, "write_table", failing)
    with pytest.raises(RunError, match=r"cannot write to output folder .*split: No space left on device"):
        write_split(split(marked_log()), tmp_path / "split")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_not_free(tmp_path: Path) -> None:
    parts = split(marked_log())
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "precious.txt").write_text("mine")
    with pytest.raises(RunError, match="filled is not empty"):
        write_split(parts, tmp_path / "filled")
    with pytest.raises(RunError, match=r"precious.txt is a file"):
        write_split(parts, tmp_path / "filled" / "precious.txt")
    with pytest.raises(RunError, match="cannot write to output folder"):
        write_split(parts, tmp_path / "filled" / "precious.txt" / "below")
    assert [path.name for path in (tmp_path / "filled").iterdir()] == ["precious.txt"]
    (tmp_path / "empty").mkdir()
    write_split(parts, tmp_path / "empty")
    assert (tmp_path / "empty" / "manifest.json").is_file()


def test_a_kept_column_must_not_replace_the_ids(tmp_path: Path) -> None:
    data = Interactions.from_ids([1, 1, 1, 2, 2, 2], [1, 2, 3, 1, 2, 3], columns={"user_id": np.arange(6)})
    with pytest.raises(DataError, match="column 'user_id' cannot be kept"):
        write_split(split(data), tmp_path / "split")
    assert list(tmp_path.iterdir()) == []
