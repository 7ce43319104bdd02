from __future__ import annotations

import json
from dataclasses import replace

import pytest

from caged.products.study import recorded
from caged.products.study.estimate import Estimator
from caged.products.study.records import at_hand, difference, market_file, market_parameters, specification
from caged.runs.loading import load_data
from caged.runs.spec import resolve
from tests.products.study.plans import SMALL, plan_of

SPLIT = "f" * 8


def content_of(run, **changed):
    """What `caged train --record` writes about a run, as far as it is looked at."""
    if run.kind == "adjust":
        return {**content_of(run.needs), "adjustment": {"form": "degree", "strength": 0.2}, **changed}
    start = None if run.needs is None else {"run": "x", "method": run.needs.method, "seed": run.needs.seed}
    if start is not None:
        start["config"] = specification(run.needs).to_json()["config"]
    written = {
        "status": "finished",
        "spec": {**specification(run).to_json(), "seed": run.seed},
        "hardware": {"device": "cpu"},
        "dataset": {"fingerprints": {}, "split_fingerprint": SPLIT},
        "seconds": {"total": 5.0},
        "metrics": {},
        **({"init": start} if start else {}),
    }
    return json.loads(json.dumps({**written, **changed}))


def write(run, root, **changed):
    path = root / run.place
    if run.market is not None:
        market_file(root, run).parent.mkdir(parents=True, exist_ok=True)
        market_file(root, run).write_text(json.dumps({"parameters": market_parameters(run)}), encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content_of(run, **changed)), encoding="utf-8")


@pytest.fixture
def runs(tmp_path):
    return {run.name: run for run in plan_of(SMALL, tmp_path).runs}


def test_every_kind_of_run_is_recognised(runs, tmp_path):
    for run in runs.values():
        write(run, tmp_path)
    assert {one.state for one in recorded(runs.values(), tmp_path).values()} == {"finished"}


def test_what_is_not_there_is_missing_and_what_failed_has_its_reason(runs, tmp_path):
    first, second, third = list(runs.values())[:3]
    write(first, tmp_path, status="failed", error="memory ran out")
    write(second, tmp_path, status="interrupted")
    found = recorded(runs.values(), tmp_path)
    assert (found[first].state, found[first].reason) == ("failed", "memory ran out")
    assert (found[second].state, found[second].seconds) == ("unfinished", 5.0)
    assert found[third].state == "missing"


def test_other_settings_are_another_run(runs):
    run = runs["first-honest-wide-1"]
    content = content_of(run)
    content["spec"]["config"]["method"]["embedding_size"] = 16
    assert difference(run, content) == "method.embedding_size is 16 in the record, 32 in the plan"


def test_a_record_from_before_an_option_has_its_default(runs):
    run = runs["first-honest-wide-1"]
    content = content_of(run)
    del content["spec"]["config"]["train"]["validate_every"]
    assert difference(run, content) is None
    del content["spec"]["config"]["method"]["embedding_size"]  # the plan has another one
    assert difference(run, content) == "method.embedding_size is 64 in the record, 32 in the plan"


def test_another_start_is_another_run(runs):
    run = runs["first-honest-galore-1"]
    content = content_of(run)
    content["init"]["seed"] = 2
    assert difference(run, content) == "it starts from lightgcn with seed 2"
    assert difference(run, content_of(run, init=None)) == "it does not start from a run of lightgcn"
    lightgcn = runs["first-honest-lightgcn-1"]
    assert difference(lightgcn, content_of(lightgcn, init={"run": "x"})) == "it starts from another run, x"
    content = content_of(run)
    content["init"]["config"]["method"]["layers"] = 9
    assert difference(run, content) == "method.layers is 9 in the record, 3 in the plan"


def test_adjusted_and_plain_records_are_told_apart(runs):
    lightgcn, adjusted = runs["first-honest-lightgcn-1"], runs["first-honest-adjusted-1"]
    assert difference(lightgcn, content_of(adjusted)) == "popularity was taken out of its scores"
    assert difference(adjusted, content_of(lightgcn)) == "its scores are as they were trained"
    quota = content_of(adjusted, adjustment={"form": "quota"})
    assert difference(adjusted, quota) == "its form is quota, in the plan it is degree"
    less = content_of(adjusted, adjustment={"form": "degree", "keep": 0.9})
    assert difference(adjusted, less) == "it keeps 0.9 of the recall, in the plan it is 0.99"


def test_another_device_than_the_plan_fixes_is_another_run(runs):
    run = runs["first-honest-ease-1"]
    assert difference(run, content_of(run, hardware={"device": "cuda"})) == "it ran on cuda, not on cpu"


def test_the_test_part_of_a_known_dataset_is_checked(runs):
    run = runs["first-honest-lightgcn-1"]
    other = {"fingerprints": {"train": "x", "valid": "y", "test": "z"}, "split_fingerprint": SPLIT}
    assert difference(run, content_of(run, dataset=other)) == "its test part is not that of gowalla"


def test_a_record_on_another_split_than_the_others_does_not_count(runs, tmp_path):
    same = [run for run in runs.values() if run.dataset == "second"]
    for run in same:
        write(run, tmp_path)
    write(same[0], tmp_path, dataset={"fingerprints": {}, "split_fingerprint": "other"})
    found = recorded(same, tmp_path)
    assert found[same[0]].reason == "it is on another split than the other records"
    assert {found[run].state for run in same[1:]} == {"finished"}


def test_a_file_that_is_no_record_is_said(runs, tmp_path):
    run = runs["first-honest-ease-1"]
    path = tmp_path / run.place
    path.parent.mkdir(parents=True)
    path.write_text("[]", encoding="utf-8")
    assert recorded([run], tmp_path)[run].reason == "it is not a record, or damaged"


DAMAGED = [
    {"status": 1},
    {"spec": []},
    {"spec": None},
    {"spec": {"config": None}},
    {"spec": {"config": {"method": None}}},
    {"hardware": []},
    {"dataset": 3},
    {"dataset": {"fingerprints": []}},
    {"init": "x"},
    {"init": {"method": "lightgcn"}},
    {"adjustment": "x"},
    {"metrics": []},
    {"metrics": None},
    {"error": ["x"]},
    {"seconds": "x"},
    {"training": []},
]


@pytest.mark.parametrize("changed", DAMAGED, ids=str)
def test_a_damaged_record_is_said(runs, tmp_path, changed):
    run = runs["first-honest-ease-1"]
    write(run, tmp_path, **changed)
    assert recorded([run], tmp_path)[run].reason == "it is not a record, or damaged"
    Estimator.from_records([tmp_path], "cpu")(run)


@pytest.mark.parametrize("key", ["hardware", "dataset", "seconds", "init", "training"])
def test_what_a_record_leaves_empty_is_not_known(runs, tmp_path, key):
    run = runs["first-honest-lightgcn-1"]
    write(run, tmp_path, **{key: None})
    assert recorded([run], tmp_path, at_hand())[run].finished
    Estimator.from_records([tmp_path], "cpu")(run)


@pytest.mark.parametrize(("key", "value"), [("seed", 2), ("protocol", "paper"), ("method", "mostpop")])
def test_a_copy_of_another_record_is_another_run(runs, key, value):
    """A copied seed would be a sample that nobody drew."""
    run = runs["first-honest-ease-1"]
    content = content_of(run)
    content["spec"][key] = value
    assert difference(run, content) == f"its {key} is {value}, in the plan it is {getattr(run, key)}"


def test_records_beside_another_market_are_of_other_data(runs, tmp_path):
    run = replace(runs["first-honest-ease-1"], data="shop", market=(("seed", 3), ("user_count", 80)))
    write(run, tmp_path)
    assert recorded([run], tmp_path)[run].finished
    (found,) = recorded([replace(run, market=(("seed", 4), ("user_count", 80)))], tmp_path).values()
    assert found.state == "other"
    assert "on a market of other parameters" in found.reason
    path = market_file(tmp_path, run)
    path.write_text("{")
    (found,) = recorded([run], tmp_path).values()
    assert (found.state, found.reason.startswith(f"{path} is not readable JSON")) == ("other", True)
    path.unlink()
    (found,) = recorded([run], tmp_path).values()
    assert (found.state, "is missing; restore it" in found.reason) == ("other", True)


def test_a_record_that_is_cut_off_leaves_the_others_alone(runs, tmp_path):
    cut, whole = runs["first-honest-ease-1"], runs["first-honest-wide-1"]
    for run in (cut, whole):
        write(run, tmp_path)
    (tmp_path / cut.place).write_text('{"status": "finis')
    found = recorded([cut, whole], tmp_path)
    assert (found[cut].state, found[whole].state) == ("other", "finished")
    assert "is not readable JSON" in found[cut].reason


def test_records_of_a_log_are_compared_with_the_log(runs, tmp_path):
    log = tmp_path / "shop.csv"
    run = replace(runs["first-honest-ease-1"], data=str(log), settings=(), presets=())
    rows = [f"u{user},i{item}" for user in range(12) for item in range(user % 5 + 6)]
    log.write_text("\n".join(["user_id,item_id", *rows]))
    fingerprint = load_data(resolve(str(log), "ease")).facts["split_fingerprint"]
    write(run, tmp_path, dataset={"fingerprints": {}, "split_fingerprint": fingerprint})
    assert run.place.parts[0] == "shop"
    assert recorded([run], tmp_path, at_hand())[run].finished
    log.write_text("\n".join(["user_id,item_id", *rows[:-1]]))
    found = recorded([run], tmp_path, at_hand())[run]
    assert (found.state, found.reason) == ("other", f"{log} holds other data than it was made with")
    log.unlink()
    assert recorded([run], tmp_path, at_hand())[run].finished  # who does not have it takes the record's word


def test_an_adjusted_run_is_on_the_split_of_what_it_adjusts(runs, tmp_path):
    adjusted = runs["second-honest-adjusted-1"]
    needed = replace(adjusted.needs, settings=(*adjusted.needs.settings, "data.split_seed=7"))
    adjusted = replace(adjusted, needs=needed)
    others = [run for run in runs.values() if run.dataset == "second" and run != adjusted]
    for run in others:
        write(run, tmp_path)
    for run in (needed, adjusted):
        write(run, tmp_path, dataset={"fingerprints": {}, "split_fingerprint": "seven"})
    assert recorded([*others[3:], adjusted], tmp_path)[adjusted].finished
