"""Comparisons: who is grouped, what is refused, and that the numbers are those of the tests they are named after."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caged
from caged.errors import CagedError, ConfigError, DataError, RunError
from caged.evaluation.significance import holm, paired_interval, paired_seed_test, paired_test, welch_test
from caged.files import json_ready
from caged.products.compare.comparison import compare, pareto_front
from caged.products.compare.tables import difference_table
from tests.products.compare.compared import FINGERPRINTS, USERS, values, write_audit_folder, write_run

TESTED = ["recall@20", "ndcg@20", "recall@20/niche", "arp@20"]


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    write_run(tmp_path / "base", "lightgcn", per_user=values(7))
    write_run(tmp_path / "other", "ips", per_user=values(7, 0.05))
    return [tmp_path / "base", tmp_path / "other"]


def seeds(folder: Path, method: str, shift: float, count: int, **options) -> list[Path]:
    return [
        write_run(folder / f"{method}-{seed}", method, per_user=values(100 + seed, shift), seed=seed, **options)
        for seed in range(1, count + 1)
    ]


def splits(count: int) -> list[dict[str, str]]:
    return [{"train": f"{index:064d}", "test": f"{index + 500:064d}"} for index in range(count)]


# ---------------------------------------------------------------- one run per method


def test_it_is_public(two: list[Path]) -> None:
    assert caged.compare is compare
    assert "lightgcn" in str(caged.compare(two))


def test_differences_are_the_paired_tests_of_the_stored_values(two: list[Path]) -> None:
    found = compare(two)
    a, b = values(7), values(7, 0.05)
    for one in found.differences:
        if one.metric not in TESTED:
            continue
        expected = paired_test(a[one.metric], b[one.metric])
        assert one.over_users == pytest.approx(expected, abs=1e-12, nan_ok=True)
        assert one.difference == expected.mean_difference
        assert one.interval is not None
        interval = paired_interval(a[one.metric], b[one.metric])
        assert interval is not None
        assert one.interval[:2] == pytest.approx(interval[:2], abs=1e-12)
        assert one.users == expected.users
        assert one.lost == (0, 0)
    assert found.values["ips"]["recall@20"] == pytest.approx(b["recall@20"].mean())


def test_holm_is_over_all_methods_and_metrics(tmp_path: Path, two: list[Path]) -> None:
    write_run(tmp_path / "third", "reg", per_user=values(7, -0.002))
    found = compare([*two, tmp_path / "third"])
    tested = [one for one in found.differences if one.over_users]
    assert len(tested) == 2 * len(TESTED)
    for kind in ("t", "wilcoxon"):
        raw = [getattr(one.over_users, f"p_{kind}") for one in tested]
        assert [getattr(one, f"p_{kind}_adjusted") for one in tested] == holm(raw)


def test_metrics_of_the_catalogue_have_no_test(two: list[Path]) -> None:
    one = next(one for one in compare(two).differences if one.metric == "gini@20")
    assert (one.over_users, one.over_seeds, one.interval, one.users) == (None, None, None, None)
    assert one.verdict == "untested"


def test_one_run_is_never_called_better(two: list[Path]) -> None:
    found = {one.metric: one.verdict for one in compare(two).differences}
    assert found["recall@20"] == "higher"
    assert found["ndcg@20"] == "unclear"
    assert found["arp@20"] == "unclear"


def test_the_usual_metrics_where_they_exist(two: list[Path]) -> None:
    assert compare(two).metrics == ("recall@20", "ndcg@20", "recall@20/niche", "gini@20", "coverage@20", "arp@20")
    assert compare(two, metrics=["arp@20", " recall@20"]).metrics == ("arp@20", "recall@20")


def test_user_groups_are_tested_over_their_users(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, name, per_user=values(7, shift)) for name, shift in (("a", 0), ("b", 0.1))]
    group = pa.array(["niche-taste" if u < 15 else None for u in range(USERS)])
    for folder in folders:
        path = folder / "per_user.parquet"
        pq.write_table(pq.read_table(path).append_column("user_group", group), path)
        stored = json.loads((folder / "metrics.json").read_text())
        stored["metrics"]["recall@20/niche-taste"] = 0.5
        (folder / "metrics.json").write_text(json.dumps(stored))
    (one,) = compare(folders, metrics=["recall@20/niche-taste"]).differences
    assert one.over_users == paired_test(values(7)["recall@20"][:15], values(7, 0.1)["recall@20"][:15])


def test_the_order_and_the_baseline(two: list[Path]) -> None:
    assert compare(two).baseline.name == "lightgcn"
    assert compare(two, baseline="ips").baseline.name == "ips"
    assert compare(two, baseline=str(two[1])).baseline.name == "ips"
    forward, backward = compare(two).differences[0], compare(two, baseline="ips").differences[0]
    assert backward.difference == pytest.approx(-forward.difference)
    with pytest.raises(ConfigError, match="unknown baseline 'isp'; known: ips, lightgcn; did you mean 'ips'"):
        compare(two, baseline="isp")


# ---------------------------------------------------------------- users that differ


def test_users_are_paired_by_identifier_and_losses_are_counted(tmp_path: Path) -> None:
    """The second run lacks users 0..9 and knows two others; its rows are in another order."""
    a, b = values(7), values(7, 0.05)
    kept = np.random.default_rng(0).permutation(np.arange(10, USERS))
    per_user = {key: np.append(column[kept], [0.5, 0.5]) for key, column in b.items()}
    write_run(tmp_path / "a", "lightgcn", per_user=a)
    write_run(tmp_path / "b", "ips", per_user=per_user, user_ids=[*kept.tolist(), 1000, 1001])
    found = compare([tmp_path / "a", tmp_path / "b"], metrics=["recall@20"])
    (one,) = found.differences
    assert one.over_users == paired_test(a["recall@20"][10:], b["recall@20"][10:])
    assert (one.users, one.lost) == (USERS - 10, (10, 2))
    assert any("user sets differ" in note and "10 only in lightgcn, 2 only in ips" in note for note in found.notes)
    assert any("25.0% of the users of lightgcn" in warning for warning in found.warnings)
    assert any("6.2% of the users of ips" in warning for warning in found.warnings)


def test_a_small_loss_is_said_without_a_warning(tmp_path: Path) -> None:
    a, b = values(7, users=200), values(7, 0.05, users=200)
    b["recall@20"][3] = math.nan
    write_run(tmp_path / "a", "lightgcn", per_user=a)
    write_run(tmp_path / "b", "ips", per_user=b)
    found = compare([tmp_path / "a", tmp_path / "b"], metrics=["recall@20"])
    assert found.differences[0].lost == (1, 0)
    assert any("user sets differ" in note for note in found.notes)
    assert found.warnings == ()


def test_identifiers_read_as_text_on_one_side(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lightgcn")
    write_run(tmp_path / "b", "ips", per_user=values(7, 0.1), user_ids=[str(u) for u in range(USERS)])
    assert compare([tmp_path / "a", tmp_path / "b"]).differences[0].users == USERS


def test_no_user_in_common(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lightgcn")
    write_run(tmp_path / "b", "ips", user_ids=[f"v{u}" for u in range(USERS)])
    with pytest.raises(DataError, match="lightgcn and ips have no user in common with a value of recall@20"):
        compare([tmp_path / "a", tmp_path / "b"])


def test_without_values_per_user_nothing_is_tested(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lightgcn")
    write_run(tmp_path / "b", "ips", per_user=values(7, 0.1), stored=False)
    found = compare([tmp_path / "a", tmp_path / "b"])
    assert all(one.over_users is None and one.interval is None for one in found.differences)
    assert found.differences[0].difference == pytest.approx(
        values(7, 0.1)["recall@20"].mean() - values(7)["recall@20"].mean()
    )
    assert any("stores no values per user" in note for note in found.notes)


# ---------------------------------------------------------------- seeds


def test_five_seeds_are_tested_over_seeds_and_over_averaged_users(tmp_path: Path) -> None:
    folders = [*seeds(tmp_path, "lightgcn", 0.0, 5), *seeds(tmp_path, "ips", 0.3, 6)]
    found = compare(folders, metrics=["recall@20", "gini@20"])
    recall, gini = found.differences
    runs = {
        name: [values(100 + seed, shift)["recall@20"] for seed in range(1, count + 1)]
        for name, shift, count in (("lightgcn", 0.0, 5), ("ips", 0.3, 6))
    }
    expected = welch_test(*([float(run.mean()) for run in runs[name]] for name in ("lightgcn", "ips")))
    assert recall.over_seeds == pytest.approx(expected, abs=1e-9)
    averaged = [np.mean(runs[name], axis=0) for name in ("lightgcn", "ips")]
    assert recall.over_users == pytest.approx(paired_test(*averaged), abs=1e-9)
    assert recall.verdict == "better"
    assert (found.seed_test, [len(group.entries) for group in found.methods]) == ("welch", [5, 6])
    assert gini.over_users is None
    assert gini.verdict == "unclear"


def test_lower_is_better_for_gini(tmp_path: Path) -> None:
    def run(method: str, seed: int, gini: float) -> Path:
        return write_run(tmp_path / f"{method}{seed}", method, seed=seed, catalogue={"gini@20": gini + seed / 1000})

    folders = [run("lightgcn", seed, 0.9) for seed in range(5)] + [run("ips", seed, 0.7) for seed in range(5)]
    assert compare(folders, metrics=["gini@20"]).differences[0].verdict == "better"
    assert compare(folders, metrics=["gini@20"], baseline="ips").differences[0].verdict == "worse"


@pytest.mark.parametrize("counts", [(2, 2), (4, 5), (1, 5)])
def test_fewer_than_five_runs_give_no_test(tmp_path: Path, counts: tuple[int, int]) -> None:
    found = compare([*seeds(tmp_path, "lightgcn", 0.0, counts[0]), *seeds(tmp_path, "ips", 0.3, counts[1])])
    assert all(one.over_users is None and one.over_seeds is None for one in found.differences)
    assert all(one.verdict == "untested" for one in found.differences)
    assert found.notes[0] == (
        f"not tested: it takes one run, or at least 5, of both methods (here: lightgcn {counts[0]}, ips {counts[1]})"
    )


def test_a_method_with_one_run_does_not_keep_the_others_from_being_tested(tmp_path: Path) -> None:
    write_run(tmp_path / "popular", "mostpop")
    folders = [*seeds(tmp_path, "lightgcn", 0.0, 5), *seeds(tmp_path, "ips", 0.3, 5), tmp_path / "popular"]
    ips, mostpop = compare(folders, metrics=["recall@20"]).differences
    assert (ips.verdict, mostpop.verdict) == ("better", "untested")
    assert mostpop.interval is not None
    assert any("lightgcn 5, mostpop 1" in note for note in compare(folders).notes)


def test_seeds_with_their_own_splits_are_paired_by_split(tmp_path: Path) -> None:
    def run(method: str, index: int, shift: float) -> Path:
        return write_run(
            tmp_path / f"{method}-{index}",
            method,
            per_user=values(index, shift),
            seed=index,
            fingerprints=splits(5)[index],
        )

    folders = [run("lightgcn", index, 0.0) for index in range(5)] + [
        run("ips", index, 0.1) for index in (3, 1, 4, 0, 2)
    ]
    found = compare(folders, metrics=["recall@20"])
    (one,) = found.differences
    means = [[float(values(index, shift)["recall@20"].mean()) for index in range(5)] for shift in (0.0, 0.1)]
    assert one.over_seeds == pytest.approx(paired_seed_test(*means), abs=1e-9)
    assert (one.over_users, one.interval, found.seed_test) == (None, None, "paired")
    assert any("paired t over runs on the same split" in note for note in found.notes)


def test_settings_make_methods_and_names(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lightgcn", config={"layers": 2, "l2": 0.1})
    write_run(tmp_path / "b", "lightgcn", config={"layers": 3, "l2": 0.1})
    write_run(tmp_path / "c", "ips", record="/somewhere/results/log/honest/ips-strong/seed1.json")
    names = [group.name for group in compare([tmp_path / name for name in "abc"]).methods]
    assert names == ["lightgcn (layers=2)", "lightgcn (layers=3)", "ips-strong"]


@pytest.mark.parametrize(("method", "option"), [("caged", "estimator_capture"), ("advdrop", "adv_capture")])
def test_how_a_run_is_executed_makes_no_other_method(method: str, option: str, tmp_path: Path) -> None:
    for seed, value in ((1, True), (2, False)):
        write_run(tmp_path / str(seed), method, seed=seed, config={option: value})
    write_run(tmp_path / "plain", "lightgcn")
    found = compare([tmp_path / name for name in ("1", "2", "plain")])
    assert [group.name for group in found.methods] == [method, "lightgcn"]


def test_the_same_seed_twice_is_no_second_sample(tmp_path: Path) -> None:
    for name in ("before", "after"):
        write_run(tmp_path / name, "lightgcn", seed=1)
    found = compare([tmp_path / "before", tmp_path / "after"])
    assert [group.name for group in found.methods] == ["before", "after"]
    assert all(one.difference == 0 for one in found.differences)


# ---------------------------------------------------------------- audits


def test_an_audit_beside_a_run(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "lightgcn")
    write_audit_folder(tmp_path / "audit", "in production", per_user=values(7, 0.05))
    found = compare([tmp_path / "run", tmp_path / "audit"])
    assert [group.name for group in found.methods] == ["lightgcn", "in production"]
    assert found.protocol == "honest"
    assert any("no protocol is given for audit" in note for note in found.notes)
    assert found.differences[0].verdict == "higher"


def test_two_audits_are_never_seeds_of_each_other(tmp_path: Path) -> None:
    folders = [write_audit_folder(tmp_path / name, "lists") for name in ("monday", "tuesday")]
    assert [group.name for group in compare(folders).methods] == ["monday", "tuesday"]


# ---------------------------------------------------------------- refusals


def refused(folders: list[Path], words: str, error: type[CagedError] = ConfigError, **options) -> None:
    with pytest.raises(error, match=words) as raised:
        compare(folders, **options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("part", ["train", "test"])
def test_other_data_is_refused(tmp_path: Path, part: str) -> None:
    write_run(tmp_path / "a", "lightgcn")
    write_run(tmp_path / "b", "ips", fingerprints={**FINGERPRINTS, part: "d" * 64})
    refused([tmp_path / "a", tmp_path / "b"], f"have different {part} parts of log, so their numbers")


def test_unpaired_splits_are_refused(tmp_path: Path) -> None:
    first, second, third = splits(3)
    for method, index, split in (("a", 1, first), ("a", 2, second), ("b", 1, first), ("b", 2, third)):
        write_run(tmp_path / f"{method}{index}", method, seed=index, fingerprints=split)
    refused([tmp_path / name for name in ("a1", "a2", "b1", "b2")], "cannot be compared")


def test_mixed_protocols_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "lightgcn")
    write_run(tmp_path / "b", "ips", protocol="paper")
    refused([tmp_path / "a", tmp_path / "b"], "protocol 'honest'.*'paper'.*choose runs of one")


def test_other_k_is_refused_and_partly_shared_k_is_said(tmp_path: Path) -> None:
    at_ten = {"recall@10": values(1)["recall@20"]}
    write_run(tmp_path / "a", "lightgcn", catalogue={})
    write_run(tmp_path / "b", "ips", per_user=at_ten, catalogue={})
    write_run(tmp_path / "c", "reg", per_user={**at_ten, **values(7)}, catalogue={})
    refused([tmp_path / "a", tmp_path / "b"], "k = 20 and .* at k = 10; values at different k cannot be compared")
    assert any("at k = 10" in note for note in compare([tmp_path / "a", tmp_path / "c"]).notes)
    assert compare([tmp_path / "b", tmp_path / "c"]).metrics == ("recall@10",)


def test_too_little_to_compare(tmp_path: Path, two: list[Path]) -> None:
    refused(two[:1], "needs at least two folders; got 1")
    refused([two[0], two[1], two[0]], "base is given twice")
    refused(seeds(tmp_path, "reg", 0.0, 3), "all 3 runs are reg with the same settings apart from the seed")


def test_folders_that_are_no_runs(tmp_path: Path, two: list[Path]) -> None:
    refused([two[0], tmp_path / "nowhere"], "nowhere is neither a folder nor", RunError)
    (tmp_path / "empty").mkdir()
    refused([two[0], tmp_path / "empty"], "neither run.json nor metrics.json", RunError)
    write_run(tmp_path / "half", status="interrupted")
    refused([two[0], tmp_path / "half"], "not finished.*caged train --resume", RunError)
    (two[1] / "per_user.parquet").write_bytes(b"PAR1")
    refused(two, "per_user.parquet is not readable", RunError)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("recal@20", "unknown metric 'recal'.*did you mean 'recall'"),
        ("recall@7", r"unknown metric 'recall@7'.*does not have it"),
        ("map@20", r"unknown metric 'map@20'; known: arp@20"),
    ],
)
def test_metrics_that_are_not_there(two: list[Path], metric: str, words: str) -> None:
    refused(two, words, metrics=[metric])


def test_undefined_values_stay_undefined(tmp_path: Path) -> None:
    nothing = {**values(7), "recall@20/niche": np.full(USERS, np.nan)}
    for name in ("a", "b"):
        write_run(tmp_path / name, name, per_user=nothing)
    found = compare([tmp_path / "a", tmp_path / "b"])
    niche = next(one for one in found.differences if one.metric == "recall@20/niche")
    assert math.isnan(niche.difference)
    assert niche.verdict == "untested"
    assert found.trade_off is None
    json.dumps(json_ready(found.to_json()), allow_nan=False)


# ---------------------------------------------------------------- trade-off, JSON


def test_the_front() -> None:
    points = {"a": (0.3, 0.1), "b": (0.2, 0.2), "c": (0.25, 0.1), "d": (0.2, 0.2)}
    assert pareto_front(points) == ("b", "d", "a")
    assert pareto_front({}) == ()


def test_the_trade_off_is_of_recall_and_niche_recall(two: list[Path]) -> None:
    found = compare(two, metrics=["arp@20"])
    assert found.trade_off is not None
    assert (found.trade_off.x, found.trade_off.y) == ("recall@20", "recall@20/niche")
    assert (found.trade_off.front, found.trade_off.unbeaten) == (("ips",), ("ips",))


def test_who_is_beaten_by_chance_only_is_not_surely_beaten(tmp_path: Path) -> None:
    """Another 40 users would turn the order of two methods that differ by noise: the front has one, both stand."""
    noise = np.random.default_rng(3).standard_normal(40)
    near = {key: value + 0.001 + 0.1 * noise for key, value in values(7).items()}
    near["recall@20"] += 0.02
    near["recall@20/niche"] += 0.02
    folders = [
        write_run(tmp_path / name, name, per_user=of)
        for name, of in (("lightgcn", values(7)), ("near", near), ("ips", values(7, 0.4)), ("less", values(7, -0.4)))
    ]
    found = compare([folders[0], folders[1], folders[3]]).trade_off
    assert found is not None
    assert found.front == ("near",)
    assert found.unbeaten == ("lightgcn", "near")
    everybody = compare(folders).trade_off
    assert everybody is not None
    assert everybody.unbeaten == ("ips",)


def test_the_column_better_holds_no_minus_sign(two: list[Path]) -> None:
    table = difference_table(compare(two, metrics=["arp@20", "recall@20"]))
    place = table.headers.index("better")
    assert [row[place] for row in table.rows] == ["neither", "higher"]


def test_json_holds_everything(two: list[Path]) -> None:
    stored = json.loads(json.dumps(json_ready(compare(two).to_json()), allow_nan=False))
    assert (stored["protocol"], stored["dataset"], stored["baseline"]) == ("honest", "log", "lightgcn")
    assert stored["methods"][1]["runs"][0]["protocol"] == "honest"
    first = stored["differences"][0]
    assert {"difference", "interval", "over_users", "p_t_adjusted", "p_wilcoxon_adjusted", "verdict", "lost"} <= set(
        first
    )
    assert first["over_users"]["p_t"] < first["p_t_adjusted"] < 0.05


def test_the_paper_protocol_keeps_its_warning(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name, name, protocol="paper")
    found = compare([tmp_path / "a", tmp_path / "b"])
    assert any("selects the epoch on the test part" in warning for warning in found.warnings)
    assert "protocol paper" in str(found)
