"""`python -m benchmarks` on a tiny graph: what it prints, writes and refuses."""

from __future__ import annotations

import json
import runpy
import sys
from functools import partial
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.cases import cases
from tests.cli.invoke import Outcome, called

PROMISED = {
    "propagation/ml-1m/k64",
    "propagation/ml-1m/k256",
    "propagation/pinterest/k64",
    "propagation/pinterest/k256",
    "step/ml-1m/k64",
    "softmax_step/ml-1m/k64",
    "softmax_step/ml-1m/k256",
    "methods/softmax/ml-1m/k256",
    "epoch/ml-1m/k64",
    "evaluation/ml-1m/k256",
    "evaluation/1m-x-1m/k64",
    "sampling/ml-1m",
    "update/ml-1m/k256",
    "phases/advdrop/ml-1m/k256",
    "phases/galore/ml-1m/k256",
    "closed_form/itemknn/ml-100k",
    "closed_form/itemknn/ml-latest-small",
    "closed_form/itemknn/ml-1m",
    "closed_form/ease/ml-100k",
}


def benchmarks(*arguments: str | Path) -> Outcome:
    return called(main, "benchmarks", *arguments)


def test_the_promised_benchmarks_exist():
    assert set(cases()) >= PROMISED


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "new" / "record.json"
    outcome = benchmarks("--only", "tiny", "--quick", "--threads", "1", "--device", "cpu", "--json", "--out", out)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out), json.loads(out.read_text())


def test_json_is_a_list_with_the_promised_fields(written):
    results, _ = written
    assert {result["name"].split("/")[0] for result in results} == {
        "propagation",
        "sampling",
        "step",
        "softmax_step",
        "epoch",
        "evaluation",
        "validation",
        "update",
        "phases",
        "closed_form",
    }
    for result in results:
        assert result["ratio"] == pytest.approx(result["reference_s"] / result["ours_s"])
        assert result["ours_s"] > 0
        assert result["threads"] == 1
        assert result["data"] == "generated"
        assert result["name"].startswith(("phases/", "closed_form/")) or result["fraction_of_ceiling"] > 0
    assert "csr" in results[0]["others"]


def test_a_profile_says_what_a_step_is_made_of():
    only = ("--only", "step/tiny/*,sampling/tiny", "--quick", "--threads", "1", "--device", "cpu", "--profile")
    step, sampling = json.loads(benchmarks(*only, "--json").out)
    assert "profile" not in sampling
    found = step["profile"]
    seconds = [part["seconds"] for part in found["parts"]]
    assert seconds == sorted(seconds, reverse=True)
    assert found["seconds"] == pytest.approx(sum(seconds))
    assert found["calls"] == pytest.approx(sum(part["calls"] for part in found["parts"]))
    assert {"aten::mul", "Optimizer.step#Adam.step"} <= {part["name"] for part in found["parts"]}
    text = benchmarks(*only).out
    assert "all operators" in text
    assert " others" in text


def test_extrapolated_numbers_are_labelled(written):
    results, _ = written
    epoch = next(result for result in results if result["name"].startswith("epoch/"))
    assert epoch["steps"] == 2
    assert epoch["extrapolated_from_steps"] == {"ours": 2, "reference": 1}


def test_an_update_says_what_its_parts_take_and_of_how_many_edges(written):
    results, _ = written
    update = next(result for result in results if result["name"] == "update/tiny/k8")
    assert set(update["parts_s"]) == {"training", "scoring", "blend", "diagnostics"}
    assert 0 < sum(update["parts_s"].values()) < 3 * update["ours_s"]
    assert update["extrapolated_from_share"] == 2048 / 4000
    assert update["interactions"] == 4000
    assert update["flops"] == 736 * 4000 * 8**2
    assert update["estimator_precision"] == "float32"


def test_the_record_says_where_it_comes_from(written):
    results, record = written
    assert record["results"] == results
    assert record["command"].startswith("python -m benchmarks --only tiny")
    assert {"torch", "numpy", "caged"} <= set(record["versions"])
    assert len(record["load_average"]) == 3
    assert record["hardware"]["device"] == "cpu"


def test_the_table_has_a_row_per_result_and_number_of_threads():
    outcome = benchmarks("--only", "sampling/tin?", "--quick", "--device", "cpu")
    assert outcome.code == 0, outcome.err
    assert "measuring sampling/tiny" in outcome.err
    rows = outcome.out.splitlines()[1:]
    assert all(row.startswith("sampling/tiny") for row in rows)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--only", "propagations"], "no benchmark matches 'propagations'"),
        (["--only", "tiny,nothing-like-it"], "no benchmark matches 'nothing-like-it'"),
        (["--only", "tiny", "--threads", "0"], "threads is 0"),
        (["--only", "tiny", "--threads", "100000"], "threads is 100000"),
        (["--only", ""], "--only is ''"),
        (["--only", "step/tiny/k8,"], "--only is 'step/tiny/k8,'"),
        (["--only", " , "], "--only is ' , '"),
        (["--only", "step/tiny/k8, nothing"], "no benchmark matches 'nothing'"),
        (["--only", "tiny", "--device", "tpu"], "unknown device 'tpu'"),
    ],
)
def test_wrong_requests_are_one_sentence(options, sentence):
    outcome = benchmarks(*options)
    assert outcome.code == 2
    assert sentence in outcome.error


def test_python_m_benchmarks_is_the_same_program(monkeypatch):
    monkeypatch.delitem(sys.modules, "benchmarks.__main__")
    as_a_program = partial(runpy.run_module, "benchmarks", run_name="__main__")
    outcome = called(as_a_program, "benchmarks", "--only", "nothing-like-it")
    assert outcome.code == 2
    assert "no benchmark matches 'nothing-like-it'" in outcome.error


def test_a_place_that_cannot_be_written_is_told_before_measuring(tmp_path):
    (tmp_path / "file").touch()
    outcome = benchmarks("--only", "sampling/tiny", "--quick", "--out", tmp_path / "file" / "record.json")
    assert outcome.code == 2
    assert f"cannot create {tmp_path / 'file'}" in outcome.error


def test_a_wrong_request_leaves_no_folder_behind(tmp_path):
    assert benchmarks("--only", "nothing-like-it", "--out", tmp_path / "new" / "record.json").code == 2
    assert not (tmp_path / "new").exists()


def test_a_folder_as_output_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    outcome = benchmarks("--only", "step/tiny/k8", "--quick", "--out", tmp_path / "results")
    assert outcome.code == 2
    assert "it is a folder" in outcome.error
