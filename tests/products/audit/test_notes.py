"""What an audit says about input that looks wrong."""

import pandas as pd
import pytest

from caged.products.audit.of_lists import audit_lists

USERS, ITEMS = range(6), range(12)
TRAIN = pd.DataFrame([(u, (u + i) % 8) for u in USERS for i in range(3)], columns=["user_id", "item_id"])
TEST = pd.DataFrame([(u, (u + 4) % 8) for u in USERS], columns=["user_id", "item_id"])
LISTS = pd.DataFrame(
    [(u, (u + 3 + place) % 8, place + 1, 1.0 - place / 10) for u in USERS for place in range(3)],
    columns=["user_id", "item_id", "rank", "score"],
)


def audited(recs=LISTS, **changed):
    return audit_lists(recs, **{"train": TRAIN, "test": TEST, "ks": (3,), **changed})


def test_good_input_has_no_problem():
    assert audited().problems == ()
    assert audited().notes == ()


@pytest.mark.parametrize(
    ("recs", "changed", "sentence"),
    [
        (LISTS.assign(user_id=LISTS["user_id"] + 50), {}, "None of the listed users occurs in train"),
        (LISTS.assign(item_id=LISTS["item_id"] + 50), {}, "None of the listed items occurs in train"),
        (
            LISTS.assign(item_id=LISTS["item_id"].where(LISTS["rank"] == 1, LISTS["item_id"] + 50)),
            {},
            "Only 33.3% of the listed places have an item that occurs in train",
        ),
        (LISTS, {"test": TEST.assign(item_id=TEST["item_id"] + 90)}, "None of the items of test occurs in train"),
        (LISTS, {"test": TEST.assign(user_id=TEST["user_id"] + 90)}, "None of the users with test items has a list"),
        (LISTS.drop(columns="rank").assign(score=0.5), {}, "No list has two different scores"),
        (LISTS.assign(score=-LISTS["score"]), {}, "the score grows from the first rank to the last"),
    ],
)
def test_what_is_wrong_as_a_whole_is_a_problem_and_a_note(recs, changed, sentence):
    result = audited(recs, **changed)
    assert any(sentence in problem for problem in result.problems), result.problems
    assert set(result.problems) <= set(result.notes)


@pytest.mark.parametrize(
    ("recs", "sentence"),
    [
        (LISTS.assign(score=0.5), "6 lists have one score for all items; their ranks order them."),
        (
            LISTS.drop(columns="rank").assign(score=LISTS["score"].where(LISTS["user_id"] > 0, 0.5)),
            "1 list has one score for all items: nothing orders them but the item ids.",
        ),
        (
            LISTS.assign(score=LISTS["score"].where(LISTS["user_id"] > 0, -LISTS["score"])),
            "In 1 list an item has a better score than one of a better rank: the rank decides",
        ),
        (LISTS.assign(score=LISTS["score"].where(LISTS["rank"] < 3, -float("inf"))), "6 rows have an infinite score"),
    ],
)
def test_what_is_odd_is_a_note(recs, sentence):
    result = audited(recs)
    assert any(sentence in note for note in result.notes), result.notes
    assert result.problems == ()


def test_valid_pairs_that_train_holds_are_told():
    valid = pd.concat([TRAIN.iloc[:2], pd.DataFrame({"user_id": [0], "item_id": [7]})])
    assert any("2 pairs of valid are also in train" in note for note in audited(valid=valid).notes)
    assert not any("valid" in note for note in audited(valid=valid.iloc[2:]).notes)
