"""`caged compare` on folders that the program itself wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from caged.evaluation.bootstrap import levels_for
from caged.evaluation.metrics import METRICS, MetricKey, OfItems
from caged.evaluation.pooling import divergence, divergence_gradient
from caged.evaluation.reference import Reference
from caged.runs.execute import evaluate_part
from caged.runs.folder import RunFolder
from tests.cli.invoke import caged, contents, train

POOLED = ("pooled_recall@20/niche", "pop_reo@20", "exposure_rate@20/popular", "pop_rsp@20", "delta_gap@20")


@pytest.fixture(scope="module")
def runs(log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for method in ("lightgcn", "mostpop"):
        train(log_csv, folder / method, method=method)
    return folder


def test_tables_when_piped(runs: Path) -> None:
    outcome = caged("compare", runs / "mostpop", runs / "lightgcn")
    assert outcome.code == 0, outcome.err
    assert "protocol honest, log, test part: difference to mostpop" in outcome.out
    header = next(line for line in outcome.out.splitlines() if line.startswith("method") and "runs" in line)
    shown = ["recall@20", "ndcg@20", "recall@20/niche", "recall@20/popular", "tail_share@20", "gini@20", "coverage@20"]
    assert header.split()[2:] == [*shown, "arp@20"]
    assert "\x1b" not in outcome.out
    assert "One run per method" in outcome.out


def test_json_is_the_stored_metrics_and_their_difference(runs: Path) -> None:
    outcome = caged("compare", runs / "mostpop", runs / "lightgcn", "--json", "--metrics", "recall@20,gini@20")
    found = json.loads(outcome.out)
    stored = {
        name: json.loads((runs / name / "metrics.json").read_text())["metrics"] for name in ("mostpop", "lightgcn")
    }
    assert (found["protocol"], found["baseline"]) == ("honest", "mostpop")
    for one in found["differences"]:
        expected = stored["lightgcn"][one["metric"]] - stored["mostpop"][one["metric"]]
        assert one["difference"] == pytest.approx(expected, abs=1e-9)
    assert found["command"].startswith("caged compare")


def test_pooled_metrics_have_an_interval_that_holds_the_difference(runs: Path) -> None:
    outcome = caged("compare", runs / "mostpop", runs / "lightgcn", "--json", "--metrics", ",".join(POOLED))
    for one in json.loads(outcome.out)["differences"]:
        assert one["difference"] == pytest.approx(one["value"] - one["baseline_value"], abs=1e-9), one["metric"]
        assert one["interval"]["method"] == "bootstrap"
        assert one["interval"]["low"] <= one["difference"] <= one["interval"]["high"]
        assert one["over_users"] is None


def test_pooled_intervals_are_those_of_common_draws(runs: Path) -> None:
    """Pooled recall of niche items, resampled by hand from hits and relevant items per user."""
    import torch

    from caged.runs.artefact import load_artefact

    hits, relevant = {}, None
    for name in ("mostpop", "lightgcn"):
        folder = RunFolder.read(runs / name)
        spec, data = folder.spec, folder.load_data("")
        method = load_artefact(runs / name, torch.device("cpu")).method
        report = evaluate_part(method.scorer(), data.split, data.split.test, spec, torch.device("cpu")).report
        hits[name], relevant = report.sums["hits@20/niche"], report.sums["relevant/niche"]
    rng = np.random.default_rng(0)
    replicates = []
    for _ in range(1000):
        drawn = rng.integers(0, len(relevant), size=len(relevant))
        total = relevant[drawn].sum()
        replicates.append(hits["lightgcn"][drawn].sum() / total - hits["mostpop"][drawn].sum() / total)
    outcome = caged("compare", runs / "mostpop", runs / "lightgcn", "--json", "--metrics", POOLED[0])
    interval = json.loads(outcome.out)["differences"][0]["interval"]
    change = hits["lightgcn"] - hits["mostpop"]
    influence = change - relevant * change.sum() / relevant.sum()  # the levels do not depend on its scale
    levels = levels_for(influence, np.count_nonzero(relevant))
    assert [interval["low"], interval["high"]] == pytest.approx(np.quantile(replicates, levels), abs=1e-9)


def test_the_interval_of_exposure_kl_draws_the_same_users_on_both_sides(runs: Path) -> None:
    """Resampled by hand from the lists themselves."""
    shown = {}
    for name in ("mostpop", "lightgcn"):
        data = RunFolder.read(runs / name).load_data("")
        reference = Reference(data.split.train, data.split.valid, data.split.test)
        recs = pq.read_table(runs / name / "recommendations.parquet")
        recs = recs.filter(pc.less_equal(recs["rank"], 20))
        users = data.split.train.user_ids.rows(recs["user_id"].combine_chunks())
        items = data.split.train.item_ids.rows(recs["item_id"].combine_chunks())
        listed, row = np.unique(users, return_inverse=True)
        shown[name] = np.zeros((len(listed), 10))
        np.add.at(shown[name], (row, reference.item_groups.bucket[items]), 1)
    rng, mass = np.random.default_rng(0), reference.item_groups.bucket_mass
    replicates = []
    for _ in range(1000):
        drawn = rng.integers(0, len(shown["mostpop"]), size=len(shown["mostpop"]))
        counts = [np.append(of_users[drawn].sum(axis=0), len(drawn)) for of_users in shown.values()]
        base, other = (float(divergence(count, mass)) for count in counts)
        replicates.append(other - base)
    outcome = caged("compare", runs / "mostpop", runs / "lightgcn", "--json", "--metrics", "exposure_kl@20")
    interval = json.loads(outcome.out)["differences"][0]["interval"]
    base, other = (float(divergence(np.append(of.sum(axis=0), len(of)), mass)) for of in shown.values())
    value, bias = other - base, np.mean(replicates) - (other - base)
    reach = 1.959964 * np.std(replicates)
    before, after = (of @ divergence_gradient(np.append(of.sum(axis=0), len(of)), mass)[:-1] for of in shown.values())
    low, high = np.quantile(replicates, levels_for(after - before, len(after))) - 2 * bias
    assert interval["low"] == pytest.approx(min(low, value - bias - reach), abs=1e-9)
    assert interval["high"] == pytest.approx(max(high, value - bias + reach), abs=1e-9)


def test_every_metric_of_a_run_can_be_shown(runs: Path) -> None:
    keys = list(json.loads((runs / "lightgcn" / "metrics.json").read_text())["metrics"])
    outcome = caged("compare", runs / "mostpop", runs / "lightgcn", "--json", "--metrics", ",".join(keys))
    assert outcome.code == 0, outcome.err
    untested = {one["metric"] for one in json.loads(outcome.out)["differences"] if one["interval"] is None}
    of_items = {name for name, metric in METRICS.items() if isinstance(metric.formula, OfItems)}
    assert {MetricKey.parse(key).name for key in untested} <= {*of_items, "recall", "ndcg"}


def test_files_are_written_and_nothing_else(runs: Path, tmp_path: Path) -> None:
    before = contents(runs)
    options = ("--html", tmp_path / "c.html", "--markdown", tmp_path / "c.md", "--latex", tmp_path / "c.tex")
    outcome = caged("compare", runs / "mostpop", runs / "lightgcn", *options)
    assert outcome.code == 0, outcome.err
    assert contents(runs) == before
    assert set(contents(tmp_path)) == {"c.html", "c.md", "c.tex"}
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")
    assert "html: " in outcome.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{runs}/mostpop",), "at least two folders"),
        (("{runs}/mostpop", "{runs}/nowhere"), "is neither a folder nor a recorded result"),
        (("{runs}/mostpop", "{runs}/lightgcn", "--baseline", "ips"), "unknown baseline 'ips'"),
        (("{runs}/mostpop", "{runs}/lightgcn", "--metrics", "recall"), "needs a cut-off"),
        (("{runs}/mostpop", "{runs}/lightgcn", "--html", "{tmp}"), "cannot write --html"),
        (("{runs}/mostpop", "{runs}/lightgcn", "--markdown", "{runs}/mostpop/metrics.json"), "the same command reads"),
        (("{runs}/mostpop", "{runs}/lightgcn", "--latex", "{tmp}/no/where.tex"), "cannot write --latex"),
        (
            ("{runs}/mostpop", "{runs}/lightgcn", "--latex", "{tmp}/same", "--markdown", "{tmp}/same"),
            "--markdown and --latex name the same file",
        ),
    ],
)
def test_bad_input(runs: Path, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    outcome = caged("compare", *(argument.format(runs=runs, tmp=tmp_path) for argument in arguments))
    assert outcome.code == 2
    assert words in outcome.error
    assert outcome.out == ""
    assert contents(tmp_path) == {}
