"""Audits from frames and files to a folder; the values are those of the hand-computed toy and of the slow metrics."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.splits.folder import write_split
from caged.data.splits.kinds import Split
from caged.errors import ConfigError, DataError, RunError
from caged.evaluation import measure as measuring
from caged.evaluation.evaluate import Evaluation
from caged.evaluation.measure import measure
from caged.evaluation.metrics import MetricKey, reported_keys
from caged.products.audit.folder import read_audit, write_audit
from caged.products.audit.of_lists import audit_evaluation, audit_lists
from tests.evaluation.worlds import TOY, World, random_world, toy_world

pd = pytest.importorskip("pandas")


def pairs(part) -> pd.DataFrame:
    return pd.DataFrame([(u, i) for u, items in part.items() for i in items], columns=["user_id", "item_id"])


def lists(items) -> pd.DataFrame:
    rows = [(u, i, rank) for u, row in items.items() for rank, i in enumerate(row, start=1)]
    return pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])


def audit(world: World, **options):
    parts = {"train": world.train, "valid": world.valid, "test": world.relevant}
    given = {name: pairs(part) for name, part in parts.items() if any(part.values())}
    given["items"] = pd.DataFrame({"item_id": range(world.item_count)})
    recs = options.pop("recs", lists(world.items))
    return audit_lists(recs, **{**given, **options})


@pytest.fixture(scope="module")
def toy():
    return audit(toy_world(), ks=(3, 5), name="toy", command="caged audit toy")


# ---------------------------------------------------------------- values


def test_every_value_of_the_toy(toy):
    expected = {key: value for key, value in TOY["expected"].items() if not MetricKey.parse(key).metric.published}
    assert set(toy.metrics) == set(expected) == {str(key) for key in reported_keys((3, 5))}
    for key, value in expected.items():
        assert toy.metrics[key] == pytest.approx(value, abs=TOY["tolerance"], rel=0), key


def test_stored_places_below_k_change_no_value():
    """`ndcg_hits100` would: it is only for the lists of 100 that the protocol `paper` makes."""
    generator = np.random.default_rng(3)
    items = {user: generator.permutation(40)[:30].tolist() for user in range(8)}
    wanted = [(u, i) for u in items for i in (40, items[u][0], items[u][25])]
    test = pd.DataFrame(wanted, columns=["user_id", "item_id"])
    train = pd.DataFrame([(u, 41 + u % 3) for u in items], columns=["user_id", "item_id"])
    catalogue = pd.DataFrame({"item_id": range(50)})
    long, short = (
        audit_lists(lists({u: row[:n] for u, row in items.items()}), train=train, test=test, items=catalogue, ks=(5,))
        for n in (30, 5)
    )
    assert not any(key.metric.published for key in long.keys)
    np.testing.assert_equal(long.metrics, short.metrics)


def test_every_value_per_user_of_the_toy(toy):
    assert toy.per_user["user_id"].to_pylist() == TOY["toy"]["users"]
    per_user = {key: values for key, values in TOY["per_user"].items() if not MetricKey.parse(key).metric.published}
    assert set(toy.per_user.column_names) == {"user_id", "user_group", *per_user}
    for key, values in per_user.items():
        expected = [math.nan if value is None else value for value in values]
        np.testing.assert_allclose(toy.per_user[key].to_numpy(), expected, rtol=0, atol=TOY["tolerance"], err_msg=key)
    groups = dict(zip(toy.per_user["user_id"].to_pylist(), toy.per_user["user_group"].to_pylist(), strict=True))
    for name, users in TOY["derived"]["user_groups"].items():
        assert [u for u, group in groups.items() if group == name] == users


def test_counts_exposure_and_intervals_of_the_toy(toy):
    assert {key: toy.counts[key] for key in TOY["derived"]["counts"]} == TOY["derived"]["counts"]
    assert toy.exposure.degrees.tolist() == TOY["derived"]["degree"]
    assert np.flatnonzero(toy.exposure.popular).tolist() == TOY["derived"]["popular"]
    assert toy.exposure.bucket.tolist() == TOY["derived"]["bucket"]
    assert {k: shown.tolist() for k, shown in toy.exposure.shown.items()} == {
        k: TOY["derived"][f"exposure@{k}"] for k in (3, 5)
    }
    assert toy.exposure.relevant.sum() == 15
    assert toy.intervals == {}  # of six users
    assert toy.withheld["recall@3"] == "fewer than 5 of the users behind the value differ in it"
    assert toy.evidence == "natural"
    assert sorted(toy.fingerprints) == ["development", "test", "train", "valid"]


@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_literal_metrics_on_random_data(seed, missing):
    """Short, empty and missing lists, seen items, users without a profile, items without interactions."""
    world = random_world(np.random.default_rng(seed))
    result = audit(world, ks=(4, 10), missing=missing)
    slow = world.slow(missing)
    assert result.per_user["user_id"].to_pylist() == slow.users
    for key, value in result.metrics.items():
        expected, per_user = slow.value(key)
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-9, err_msg=key)
        if per_user is not None:
            np.testing.assert_allclose(result.per_user[key].to_numpy(), per_user, rtol=0, atol=1e-9, err_msg=key)


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_blocks_of_users_give_what_one_pass_gives(monkeypatch, missing, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    world = random_world(np.random.default_rng(4), user_count=120)
    whole = measure(world.lists, world.reference, (4, 10), missing=missing)
    monkeypatch.setattr(measuring, "BLOCK_PLACES", 50)
    blocks = measure(world.lists, world.reference, (4, 10), missing=missing)
    summed = measure(world.lists, world.reference, (4, 10), missing=missing, per_user_limit=0)
    assert summed.per_user == {}
    for report in (blocks, summed):
        assert report.users.tolist() == whole.users.tolist()
        assert report.users_per_metric == whole.users_per_metric
        assert report.counts == whole.counts
        for key, value in whole.metrics.items():
            np.testing.assert_allclose(report.metrics[key], value, rtol=0, atol=1e-12, err_msg=key)
        for k, shown in whole.exposures.items():
            np.testing.assert_array_equal(report.exposures[k], shown)
    for name, values in {**whole.per_user, **whole.sums}.items():
        np.testing.assert_array_equal({**blocks.per_user, **blocks.sums}[name], values)


def test_without_a_test_part_there_is_no_accuracy():
    world = toy_world()
    result = audit(world, test=None, ks=(3,))
    assert result.evidence == "none"
    assert math.isnan(result.metrics["recall@3"])
    assert result.metrics["tail_share@3"] == pytest.approx(0.9)
    assert result.exposure.relevant is None
    assert "There is no test part, so accuracy is not measured." in result.notes


# ---------------------------------------------------------------- treatments


def test_clean_input_needs_no_notes():
    world = toy_world()
    world.items = {u: row for u, row in world.items.items() if len(row) == 5}
    world.relevant = {u: part for u, part in world.relevant.items() if u in world.items}
    assert audit(world, ks=(3,)).notes == ()


def test_every_treatment_is_counted_and_told():
    world = toy_world()
    odd = pd.DataFrame(
        [(0, 3, 9), (0, 0, 2), (1, 99, 5), (77, 1, 1), (77, 2, 1)], columns=["user_id", "item_id", "rank"]
    )
    result = audit(world, recs=pd.concat([lists(world.items), odd]), ks=(3,))
    expected = {
        "rows": 27,
        "rows_used": 16,  # within the first 3 places
        "duplicate_rows": 1,  # user 0 has item 3 already
        "duplicate_ranks": 3,  # of user 0 at rank 2, of user 1 at rank 5, of user 77 at rank 1
        "lists_with_rank_gaps": 1,  # user 0 goes from 5 to 9
        "seen_rows": 1,  # user 0 has item 0 in train
        "users_unknown": 1,
        "users_without_profile": 1,
        "items_unknown": 1,
        "users_relevant_without_list": 1,
        "lists_shorter_than@3": 2,
    }
    assert {key: result.counts[key] for key in expected} == expected
    assert result.counts["items"] == 13
    told = "\n".join(result.notes)
    for sentence in (
        "1 row named an item a second time",
        "3 rows had the rank of another item",
        "1 list left out ranks; the gaps were closed.",
        "1 row recommended something the user already had (in train or valid), counted in the first 3 places: kept;",
        "1 user of the lists occurs in no log: kept",
        "1 listed item occurs in no log and no item table: it joins the catalogue as niche",
        "1 user with test items has no list: their accuracy counts as 0.",
        "2 lists are shorter than 3",
    ):
        assert sentence in told
    assert result.per_user["user_group"].to_pylist()[-1] is None  # user 77 has no profile


def test_dropping_seen_items_equals_lists_without_them():
    world = random_world(np.random.default_rng(8))
    dropped = audit(world, ks=(4,), drop_seen=True)
    seen = {u: world.train[u] | world.valid[u] for u in world.train}
    world.items = {u: [i for i in row if i not in seen[u]] for u, row in world.items.items()}
    clean = audit(world, ks=(4,))
    assert dropped.counts["seen_rows"] > 0
    assert any("dropped, later items moved up" in note for note in dropped.notes)
    np.testing.assert_equal(dropped.metrics, clean.metrics)


def test_ids_that_never_match_are_suspected():
    world = toy_world()
    recs = lists(world.items)
    result = audit(world, recs=recs.assign(user_id=recs["user_id"] + 100, item_id=recs["item_id"] + 100), ks=(3,))
    assert "None of the listed users occurs in train: do both files use the same user ids?" in result.notes
    assert "None of the listed items occurs in train: do both files use the same item ids?" in result.notes


def test_bad_input_is_one_sentence():
    world = toy_world()
    with pytest.raises(DataError, match="1 of the 16 relevant pairs were also seen in train or valid"):
        audit(world, test=pd.concat([pairs(world.relevant), pairs({0: {0}})]))
    with pytest.raises(DataError, match=r"column 'item_id' of test holds text .such as '9'. where train has integers"):
        audit(world, test=pairs(world.relevant).astype({"item_id": "str"}))
    with pytest.raises(DataError, match="column 'item_id' of the item table holds text"):
        audit(world, items=pd.DataFrame({"item_id": ["a"]}))
    with pytest.raises(DataError, match="the frame of items has no column 'item_id', found: 'id'"):
        audit(world, items=pd.DataFrame({"id": ["a"]}))
    with pytest.raises(DataError, match="the frame of items holds no items"):
        audit(world, items=pd.DataFrame({"item_id": np.zeros(0, dtype=int)}))
    with pytest.raises(ConfigError, match="k is 0; give at least one cut-off"):
        audit(world, ks=(0,))
    with pytest.raises(ConfigError, match="unknown evidence 'hearsay'"):
        audit(world, evidence="hearsay")
    with pytest.raises(ConfigError, match="unknown treatment of missing lists 'ignore'"):
        audit(world, missing="ignore")


# ---------------------------------------------------------------- sources


def test_files_folders_and_splits_give_the_same_audit(toy, tmp_path: Path):
    world = toy_world()
    parts = Split(world.part(world.train), world.part(world.valid), world.part(world.relevant), kind="given")
    recs = lists(world.items)
    recs.to_csv(tmp_path / "recs.csv", index=False)
    for name, part in parts.parts.items():
        pq.write_table(part.to_arrow(), tmp_path / f"{name}.parquet")
    write_split(parts, tmp_path / "split")
    (tmp_path / "items.csv").write_text("item_id,title\n" + "".join(f"{i},Item {i}\n" for i in range(12)))
    files = {name: tmp_path / f"{name}.parquet" for name in parts.parts}
    for sources in (files, {"train": parts}, {"train": tmp_path / "split"}, {**parts.parts}):
        result = audit_lists(tmp_path / "recs.csv", items=tmp_path / "items.csv", ks=(3, 5), **sources)
        np.testing.assert_equal(result.metrics, toy.metrics)
        assert result.fingerprints == toy.fingerprints
        assert result.name == "recs"
    assert {item.title for example in result.examples for item in example.shown} <= {f"Item {i}" for i in range(12)}


def test_a_part_of_one_pair_is_enough():
    result = audit(toy_world(), test=pairs({0: {3}}), ks=(3,))
    assert result.metrics["recall@3"] == 1.0


def test_text_ids_and_text_titles():
    world = toy_world()

    def renamed(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(user_id="u" + frame["user_id"].astype(str), item_id="i" + frame["item_id"].astype(str))

    items = pd.DataFrame(
        {"item_id": [f"i{i}" for i in range(12)], "title": [None, *(f"Tale {i}" for i in range(1, 12))]}
    )
    result = audit_lists(
        renamed(lists(world.items)),
        train=renamed(pairs(world.train)),
        test=renamed(pairs(world.relevant)),
        items=items,
        ks=(3,),
    )
    assert result.metrics["arp@3"] == pytest.approx(61 / 30)
    shown = {item.item_id: item.title for example in result.examples for item in example.shown}
    assert shown["i3"] == "Tale 3"
    assert shown["i0"] is None


def test_further_tests_use_the_same_lists():
    world = toy_world()
    other = {
        u: {(i + 5) % 12 for i in items} - world.train[u] - world.valid.get(u, set())
        for u, items in world.relevant.items()
    }
    result = audit(world, ks=(3,), further_tests={"oracle": pairs(other), "later": pairs(world.relevant)})
    assert {name: further.evidence for name, further in result.further.items()} == {
        "oracle": "oracle",
        "later": "natural",
    }
    assert result.further["later"].metrics["recall@3"] == result.metrics["recall@3"]
    world.relevant = other
    assert result.further["oracle"].metrics["recall@3"] == pytest.approx(world.slow().value("recall@3")[0])
    assert result.further["oracle"].metrics["gini@3"] == result.metrics["gini@3"]


# ---------------------------------------------------------------- examples


def test_examples_are_typical_users_of_each_group(toy):
    """niche-taste u5, blockbuster u3; of diverse u0 u1 u2 the lifts at 5 lie around their median."""
    assert [(example.user_id, example.group) for example in toy.examples if example.group != "diverse"] == [
        ("5", "niche-taste"),
        ("3", "blockbuster"),
    ]
    lift = dict(zip(toy.per_user["user_id"].to_pylist(), toy.per_user["popularity_lift@5"].to_pylist(), strict=True))
    diverse = {u: lift[u] for u in (0, 1, 2)}
    middle = np.median(list(diverse.values()))
    nearest = sorted(diverse, key=lambda u: (abs(diverse[u] - middle), u))[:2]
    assert [int(example.user_id) for example in toy.examples if example.group == "diverse"] == sorted(nearest)
    first = toy.examples[0]
    assert first.profile_size == 5
    assert [item.degree for item in first.profile] == sorted(item.degree for item in first.profile)
    assert [(item.item_id, item.popular, item.relevant) for item in first.shown] == [
        ("0", True, True),
        ("3", False, True),
    ]


# ---------------------------------------------------------------- our own evaluations and the folder


def test_an_evaluation_of_ours_becomes_the_same_audit(toy):
    world = toy_world()
    reference = world.reference
    report = measure(world.lists, reference, metrics=reported_keys((3, 5)))
    evaluation = Evaluation(report, reference, world.lists)
    result = audit_evaluation(evaluation, name="ours", protocol="honest", further={"oracle": (evaluation, "oracle")})
    np.testing.assert_equal(result.metrics, toy.metrics)
    assert result.intervals == toy.intervals
    assert result.fingerprints == toy.fingerprints
    assert [example.user_id for example in result.examples] == [example.user_id for example in toy.examples]
    assert result.protocol == "honest"
    assert result.further["oracle"].evidence == "oracle"


def test_the_folder_round_trip(toy, tmp_path: Path):
    write_audit(toy, tmp_path / "audit")
    assert {path.name for path in (tmp_path / "audit").iterdir()} == {
        "audit.json",
        "metrics.json",
        "per_user.parquet",
        "sums.parquet",
        "exposure.parquet",
    }
    stored = read_audit(tmp_path / "audit")
    np.testing.assert_equal(dict(stored.metrics), toy.metrics)
    assert stored.intervals == toy.intervals
    assert (stored.name, stored.evidence, stored.protocol) == ("toy", "natural", None)
    assert stored.users == toy.users
    assert stored.counts == toy.counts
    assert stored.fingerprints == toy.fingerprints
    for name, expected in (("per_user", toy.per_user), ("sums", toy.sums)):
        table = pq.read_table(tmp_path / "audit" / f"{name}.parquet")
        assert table.column_names == expected.column_names
        np.testing.assert_equal(table.to_pydict(), expected.to_pydict())
    assert table.schema.metadata[b"bucket_mass"] == b"5,3,3,2,2,1,1,1,1,1"
    about = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert (about["command"], about["ks"]) == ("caged audit toy", [3, 5])
    shown = pq.read_table(tmp_path / "audit" / "exposure.parquet")
    assert shown["shown@3"].to_pylist() == TOY["derived"]["exposure@3"]
    with pytest.raises(RunError, match="is not empty"):
        write_audit(toy, tmp_path / "audit")


def test_undefined_values_survive_the_folder(tmp_path: Path):
    result = audit(toy_world(), test=None, ks=(3,))
    write_audit(result, tmp_path / "audit")
    assert '"recall@3": null' in (tmp_path / "audit" / "metrics.json").read_text()
    assert math.isnan(read_audit(tmp_path / "audit").metrics["recall@3"])


def test_folders_that_are_no_audit(tmp_path: Path):
    with pytest.raises(RunError, match=r"holds no metrics\.json"):
        read_audit(tmp_path)
    (tmp_path / "metrics.json").write_text("[]")
    with pytest.raises(RunError, match="holds no metrics"):
        read_audit(tmp_path)
    (tmp_path / "metrics.json").write_text('{"metrics": {}, "fingerprints": {}}')
    with pytest.raises(RunError, match="is incomplete"):
        read_audit(tmp_path)


def test_very_many_users_leave_no_values_per_user(monkeypatch, tmp_path: Path):
    monkeypatch.setattr("caged.products.audit.of_lists.PER_USER_LIMIT", 3)
    result = audit(toy_world(), ks=(3,))
    assert result.per_user is None
    assert result.sums is None
    assert result.metrics["recall@3"] == pytest.approx(23 / 60)
    assert {interval.method for interval in result.intervals.values()} == {"normal"}
    assert len(result.examples) == 4
    write_audit(result, tmp_path / "audit")
    assert not (tmp_path / "audit" / "per_user.parquet").exists()


def test_interactions_with_other_id_maps_are_reindexed():
    """Each part may know its own users and items only."""
    world = toy_world()
    alone = Interactions.from_ids(*(pairs(world.relevant)[name].tolist() for name in ("user_id", "item_id")))
    assert alone.item_ids != IdMap.range(12)
    assert audit(world, test=alone, ks=(3,)).metrics["recall@3"] == pytest.approx(23 / 60)
