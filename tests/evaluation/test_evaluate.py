import math

import numpy as np
import pyarrow as pa
import pytest
import torch

from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.some_users import sampled_users
from caged.errors import ConfigError, DataError
from caged.evaluation.evaluate import Evaluation, Reference, evaluate, make_validator
from caged.evaluation.lists import Lists
from caged.evaluation.measure import measure
from caged.evaluation.tables import per_user_table, recommendations_table
from tests.evaluation.worlds import random_world, toy_world

WORLD = random_world(np.random.default_rng(11), user_count=30, item_count=40)
TRAIN, VALID, TEST = (WORLD.part(pairs) for pairs in (WORLD.train, WORLD.valid, WORLD.relevant))
SCORES = torch.from_numpy(np.random.default_rng(12).random((30, 40)).astype(np.float32))


def scorer(users):
    return SCORES[users]


def test_testing_masks_train_and_valid_and_lists_the_users_with_test_items():
    result = evaluate(scorer, train=TRAIN, valid=VALID, relevant=TEST, ks=(5,))
    assert result.lists.users.tolist() == sorted(u for u, items in WORLD.relevant.items() if items)
    for u, row, length in zip(result.lists.users, result.lists.items, result.lists.lengths, strict=True):
        seen = WORLD.train[u] | WORLD.valid[u]
        ranked = sorted(set(range(40)) - seen, key=lambda i: -SCORES[u, i])
        assert row[:length].tolist() == ranked
    expected = measure(result.lists, WORLD.reference, ks=(5,))
    np.testing.assert_equal(result.report.metrics, expected.metrics)
    assert result.report.counts["users_relevant_without_list"] == 0


def test_a_perfect_scorer_is_perfect_and_only_for_the_evaluated_part():
    def oracle(part):
        table = torch.zeros(30, 40)
        table[torch.from_numpy(part.users.copy()), torch.from_numpy(part.items.copy())] = 1.0
        return lambda users: table[users]

    metrics = ("ndcg@20", "recall@20", "mrr@20")
    tested = evaluate(oracle(TEST), train=TRAIN, valid=VALID, relevant=TEST, metrics=metrics)
    assert tested.report.metrics == pytest.approx(dict.fromkeys(metrics, 1.0))
    validate = make_validator(TRAIN, VALID, metrics=metrics)
    assert validate(oracle(VALID)) == pytest.approx(dict.fromkeys(metrics, 1.0))
    assert validate(oracle(TEST))["mrr@20"] < 1.0


def test_the_validator_equals_evaluate_on_the_validation_part():
    validate = make_validator(TRAIN, VALID, k=10)
    expected = evaluate(scorer, train=TRAIN, valid=None, relevant=VALID, ks=(10,)).report.metrics
    assert validate(scorer) == {key: expected[key] for key in ("recall@10", "ndcg@10")}
    keys = ("ndcg_hits100@10", "recall@5/niche", "tail_share@10", "pop_reo@5")
    chosen = make_validator(TRAIN, VALID, metrics=keys)(scorer)
    at_five = evaluate(scorer, train=TRAIN, valid=None, relevant=VALID, ks=(5,)).report.metrics
    np.testing.assert_equal(chosen, {key: (expected | at_five)[key] for key in keys})


def test_lists_are_as_long_as_asked_needed_and_possible():
    def width(**options):
        return evaluate(scorer, train=TRAIN, valid=VALID, relevant=TEST, **options).lists.width

    assert width(ks=(5,)) == 40  # 100 places by default, 40 items
    assert width(ks=(5,), list_length=8) == 8
    assert width(ks=(5, 12), list_length=8) == 12
    assert width(metrics=("recall@15",), list_length=8) == 15


def test_a_user_for_whom_everything_is_masked_counts_as_missing():
    """User 2 has no list because the scorer forbids every item: accuracy 0, list metrics undefined."""
    world = toy_world()

    def forbidding(users):
        return torch.where((users == 2)[:, None], -math.inf, torch.zeros(len(users), 12))

    parts = {"train": world.part(world.train), "valid": world.part(world.valid), "relevant": world.part(world.relevant)}
    report = evaluate(forbidding, **parts, ks=(3,)).report
    assert report.counts["users_relevant_without_list"] == 1
    place = report.users.tolist().index(2)
    assert report.per_user["recall@3"][place] == 0
    assert math.isnan(report.per_user["arp@3"][place])


def test_leaks_empty_parts_and_wrong_cuts_are_errors():
    with pytest.raises(DataError, match="also seen in train or valid"):
        evaluate(scorer, train=TRAIN, valid=VALID, relevant=VALID)
    with pytest.raises(DataError, match="also seen in train"):
        make_validator(TRAIN, TRAIN)
    nothing = TEST.select(np.zeros(len(TEST), dtype=bool))
    with pytest.raises(DataError, match="evaluated part has no interactions"):
        evaluate(scorer, train=TRAIN, valid=VALID, relevant=nothing)
    with pytest.raises(DataError, match="validation part has no interactions"):
        make_validator(TRAIN, nothing)
    with pytest.raises(ConfigError, match=r"k is 41; allowed are 1\.\.40"):
        evaluate(scorer, train=TRAIN, valid=VALID, relevant=TEST, ks=(41,))
    with pytest.raises(ConfigError, match=r"k is 41; allowed are 1\.\.40"):
        make_validator(TRAIN, VALID, metrics=("recall@41",))
    with pytest.raises(ConfigError, match="did you mean 'recall'"):
        make_validator(TRAIN, VALID, metrics=("recal@20",))


def test_tables_speak_external_identifiers():
    data = Interactions.from_ids(["bo", "al", "bo"], [30, 10, 20])
    lists = Lists(
        np.array([0, 1]),
        np.array([[2, 1], [0, -1]]),
        np.array([[0.5, 0.25], [2.0, -np.inf]], dtype=np.float32),
    )
    table = recommendations_table(lists, data.user_ids, data.item_ids)
    assert table.to_pydict() == {
        "user_id": ["al", "al", "bo"],
        "item_id": [30, 20, 10],
        "score": [0.5, 0.25, 2.0],
        "rank": [1, 2, 1],
    }
    unscored = recommendations_table(Lists(lists.users, lists.items), data.user_ids, data.item_ids)
    assert unscored["score"].to_pylist() == [None] * 3
    assert unscored.schema == table.schema


@pytest.mark.parametrize(("places", "parts"), [(1, 3), (4, 2), (100, 1)])
def test_blocks_of_recommendations_are_the_whole_table(places, parts, monkeypatch):
    monkeypatch.setattr("caged.evaluation.outcome.BLOCK_PLACES", places)
    data = Interactions.from_ids(["bo", "al", "cy"], [30, 10, 20])
    items = np.array([[2, 1], [-1, -1], [0, -1]])
    lists = Lists(np.arange(3), items, np.where(items < 0, -np.inf, 0.5).astype(np.float32))
    reference = Reference(data, None, data.select(np.zeros(len(data), dtype=bool)))
    found = Evaluation(None, reference, lists)
    blocks = list(found.recommendation_blocks())
    assert len(blocks) == parts
    assert pa.concat_tables(blocks).equals(found.recommendations)
    (nobody,) = Evaluation(None, reference, Lists(lists.users[:0], items[:0], lists.scores[:0])).recommendation_blocks()
    assert (nobody.num_rows, nobody.schema) == (0, found.recommendations.schema)


def test_per_user_table_has_a_row_per_user_and_a_column_per_metric():
    world = toy_world()
    report = measure(world.lists, world.reference, ks=(3,))
    table = per_user_table(report, IdMap.of([f"u{u}" for u in range(6)]))
    assert table.column_names == ["user_id", "user_group", *report.per_user]
    assert table["user_id"].to_pylist() == ["u0", "u1", "u2", "u3", "u4", "u5"]
    assert table["recall@3"].to_pylist()[2:] == [0.5, 0.5, 0.0, 2 / 3]
    assert math.isnan(table["recall@3"].to_pylist()[1])
    assert {str(table.schema.field(name).type) for name in report.per_user} == {"double"}


def test_a_sample_of_users_is_ranked_exactly():
    """Its recall is the mean over the sampled users of what all of them have, groups of items included."""
    sample = sampled_users(VALID, 7)
    whole = evaluate(scorer, train=TRAIN, valid=None, relevant=VALID, ks=(10,)).report
    asked = []

    def watched(users):
        asked.extend(users.tolist())
        return SCORES[users]

    keys = ("recall@10", "recall@10/niche")
    found = make_validator(TRAIN, VALID, metrics=keys, users=7)(watched)
    assert asked == sample.tolist()
    for key in keys:
        assert found[key] == pytest.approx(np.nanmean(whole.per_user[key][np.isin(whole.users, sample)]))
    everybody = make_validator(TRAIN, VALID, metrics=keys, users=10**6)(scorer)
    assert everybody == make_validator(TRAIN, VALID, metrics=keys)(scorer)
