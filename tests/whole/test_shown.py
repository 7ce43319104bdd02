"""What chance showed, from the market to training, evaluation, audits, gates, comparisons and pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caged as package
from caged.data import load
from caged.data.market import MarketConfig, simulate
from caged.data.shown import ShownAtRandom, in_first_half
from caged.errors import ConfigError, DataError
from caged.page.definitions import CHANCE, WHY_FAIREST
from tests.cli.invoke import caged, refused, train

SMALL = MarketConfig(
    user_count=80, item_count=60, rounds=12, test_rounds=4, slots=6, rank=8, shortlist=20, test_share_explore=0.7
)
KEYS = ("shown_auc", "shown_auc/popular", "shown_auc/niche", "shown_auc_within", "shown_ndcg@5", "shown_precision@5")


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown") / "market"
    simulate(SMALL).write(folder)
    return folder


@pytest.fixture(scope="module")
def runs(market: Path) -> dict[str, Path]:
    places = {method: market.parent / method for method in ("mostpop", "ease")}
    for method, place in places.items():
        assert train(market, place, method=method).code == 0
    return places


def stored(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "metrics.json").read_text())


def shown_lists(market: Path, *, top: int | None = None) -> pa.Table:
    """For each user whatever chance showed, scored by the number of training users, as a shop would export it."""
    parts = load(market).parts
    assert parts is not None
    shown = ShownAtRandom.of(parts["test"], parts["test_negative"])
    degrees = parts["train"].item_degrees
    users = np.concatenate([shown.liked.users, shown.not_liked.users])
    items = np.concatenate([shown.liked.items, shown.not_liked.items])
    order = np.lexsort((items, -degrees[items], users))
    users, items = users[order], items[order]
    within = np.arange(len(users)) - np.searchsorted(users, users)
    kept = within < (top or len(users))
    return pa.table(
        {
            "user_id": shown.liked.user_ids.external(users[kept]),
            "item_id": shown.liked.item_ids.external(items[kept]),
            "score": degrees[items[kept]].astype(np.float64),
        }
    )


# ---------------------------------------------------------------- runs


def test_a_run_is_judged_by_what_chance_showed(runs: dict[str, Path], market: Path) -> None:
    found = stored(runs["ease"])
    assert set(KEYS) <= set(found["metrics"])
    assert all(0 < found["metrics"][key] < 1 for key in KEYS)
    assert found["shown_floors"]["random choice"]["shown_auc"] == 0.5
    liked = simulate(SMALL).shown_at_random().liked
    assert (
        found["counts"]["shown_liked"]
        == len(liked)
        < json.loads((market / "simulation.json").read_text())["counts"]["test_natural"]
    )
    said = json.loads((runs["ease"] / "run.json").read_text())["dataset"]
    assert said["fingerprints"]["test_negative"] == load(market).contents["test_negative"].fingerprint
    per_user = pq.read_table(runs["ease"] / "per_user.parquet")
    values = per_user["shown_auc"].to_numpy()
    assert np.nanmean(values) == pytest.approx(found["metrics"]["shown_auc"])


def test_evaluating_again_prints_the_floors_beside_the_method(runs: dict[str, Path]) -> None:
    outcome = caged("evaluate", runs["ease"])
    lines = [line.split("  ")[0].strip() for line in outcome.out.splitlines()]
    start = lines.index("what chance showed")
    assert {"ease", "random choice", "most popular"} <= set(lines[start:])
    refused(caged("evaluate", runs["ease"], "--part", "test_negative"), "unknown part 'test_negative'")


def test_the_halves_judge_different_users_and_only_by_what_chance_showed(runs: dict[str, Path]) -> None:
    whole = stored(runs["ease"])
    halves = [
        json.loads(caged("evaluate", runs["ease"], "--shown-half", half, "--json").out) for half in ("first", "second")
    ]
    assert sum(half["users"]["shown_auc"] for half in halves) == whole["users"]["shown_auc"]
    shares = [half["users"]["shown_auc"] / whole["users"]["shown_auc"] for half in halves]
    weighted = sum(share * half["metrics"]["shown_auc"] for share, half in zip(shares, halves, strict=True))
    assert weighted == pytest.approx(whole["metrics"]["shown_auc"])
    assert all(half["metrics"]["recall@20"] == whole["metrics"]["recall@20"] for half in halves)
    per_user = pq.read_table(runs["ease"] / "per_user.parquet", columns=["user_id", "shown_auc"])
    first = in_first_half(package.data.IdMap.of(per_user["user_id"]))
    assert halves[0]["metrics"]["shown_auc"] == pytest.approx(np.nanmean(per_user["shown_auc"].to_numpy()[first]))
    refused(caged("evaluate", runs["ease"], "--shown-half", "third"), "allowed: all, first, second")


def test_a_run_may_be_judged_on_one_half_from_the_start(market: Path, runs: dict[str, Path], tmp_path: Path) -> None:
    train(market, tmp_path / "run", "--set", "eval.shown_half=first", "--set", "eval.shown_k=3", method="ease")
    half = stored(tmp_path / "run")
    assert "shown_ndcg@3" in half["metrics"]
    assert half["users"]["shown_auc"] < stored(runs["ease"])["users"]["shown_auc"]
    outcome = caged("compare", runs["ease"], tmp_path / "run", "--metrics", "shown_auc")
    refused(outcome, "shown_auc cannot be compared", "the half of the users")


# ---------------------------------------------------------------- comparisons and pages


def test_compared_runs_have_the_floors_beside_them(runs: dict[str, Path], tmp_path: Path) -> None:
    outcome = caged("compare", runs["mostpop"], runs["ease"], "--html", tmp_path / "page.html")
    assert outcome.code == 0, outcome.err
    assert "test part: what chance showed" in outcome.out
    assert "random choice" in outcome.out
    page = (tmp_path / "page.html").read_text()
    assert CHANCE in page
    assert WHY_FAIREST in page
    found = package.compare([runs["mostpop"], runs["ease"]])
    assert [key for key in found.metrics if key.metric.of_shown] == ["shown_auc", "shown_auc/niche", "shown_auc_within"]
    assert found.to_json()["shown_floors"] == stored(runs["mostpop"])["shown_floors"]
    tested = {one.metric: one for one in found.differences}["shown_auc"]
    assert tested.interval is not None
    assert tested.over_users is not None


def test_the_page_of_a_run_has_the_section(runs: dict[str, Path]) -> None:
    page = (runs["ease"] / "report.html").read_text()
    assert CHANCE in page
    assert WHY_FAIREST in page
    assert "random choice" in page


def test_the_fairest_judge_is_explained_in_two_sentences() -> None:
    assert WHY_FAIREST.count(". ") + WHY_FAIREST.endswith(".") == 2


# ---------------------------------------------------------------- audits


def test_an_audit_of_scores_over_what_was_shown_is_the_evaluation_of_the_method(market: Path) -> None:
    """Ties of scores count one half, as where a model is evaluated."""
    audit = package.audit(
        shown_lists(market),
        market / "train.parquet",
        market / "test.parquet",
        test_negative=market / "test_negative.parquet",
    )
    popular = audit.result.floors["most popular"]
    for key in KEYS:
        assert audit.metrics[key] == pytest.approx(popular[key], abs=1e-12), key
    assert "shown_not_listed" not in {name for name, count in audit.result.counts.items() if count}
    assert set(KEYS) <= set(audit.intervals)
    assert CHANCE in audit.to_html()
    assert audit.result.fingerprints["test_negative"] == load(market).contents["test_negative"].fingerprint


def test_shown_items_that_lists_lack_are_tied_behind_and_told(market: Path) -> None:
    audit = package.audit(shown_lists(market, top=2), market, k=2)  # the folder knows its parts
    assert audit.result.counts["shown_not_listed"] > 0
    assert any("tied behind all that a list holds" in note for note in audit.notes)
    assert audit.metrics["shown_auc"] != audit.result.floors["most popular"]["shown_auc"]
    assert abs(audit.metrics["shown_auc"] - 0.5) < 0.1  # most pairs are tied
    assert audit.result.counts["rows_used"] == sum(audit.result.exposure.shown[2])


def test_a_rank_decides_where_there_is_one(market: Path) -> None:
    lists = shown_lists(market)
    users = lists["user_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    rank = np.arange(len(users)) - np.searchsorted(users, users) + 1
    ranked = package.audit(lists.drop_columns("score").append_column("rank", pa.array(rank)), market)
    assert ranked.metrics["shown_auc"] != ranked.result.floors["most popular"]["shown_auc"]
    assert ranked.metrics["shown_ndcg@5"] == pytest.approx(ranked.result.floors["most popular"]["shown_ndcg@5"])


def test_gates_know_the_keys(market: Path, tmp_path: Path) -> None:
    pq.write_table(shown_lists(market), tmp_path / "lists.parquet")
    given = ["audit", tmp_path / "lists.parquet", "--train", market, "--shown-k", "3"]
    assert caged(*given, "--fail-if", "shown_auc<0.99").code == 1
    passed = caged(*given, "--fail-if", "shown_auc<0.3", "--fail-if", "shown_ndcg@3<0.05", "-o", tmp_path / "audit")
    assert passed.code == 0, passed.err
    against = caged(*given, "--against", tmp_path / "audit", "--fail-if", "shown_auc drops 1% surely", "--json")
    assert against.code == 0, against.err
    assert json.loads(against.out)["shown_floors"] == stored(tmp_path / "audit")["shown_floors"]
    refused(caged(*given, "--fail-if", "shown_ndcg@5<0.3"), "measures k = 3; add it to --shown-k")
    refused(caged(*given, "--shown-half", "last"), "eval.shown_half is 'last'")


def test_a_test_of_ones_own_does_not_get_the_negatives_of_the_folder(market: Path) -> None:
    audit = package.audit(shown_lists(market), market, market / "test_oracle.parquet")
    assert not any(key.startswith("shown_") for key in audit.metrics)


def test_wrong_negatives_are_refused(market: Path) -> None:
    lists, train, test = shown_lists(market), market / "train.parquet", market / "test.parquet"
    with pytest.raises(DataError, match="pairs of test_negative are also in train or valid"):
        package.audit(lists, train, test, test_negative=train)
    with pytest.raises(DataError, match="both liked and not liked"):
        package.audit(lists, train, test, test_negative=test)
    with pytest.raises(DataError, match="without a test part"):
        package.audit(lists, train, test_negative=market / "test_negative.parquet")
    with pytest.raises(ConfigError, match="unknown half of the users"):
        package.audit(lists, market, shown_half="both")
