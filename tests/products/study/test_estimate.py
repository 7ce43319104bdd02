from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from caged.products.study.estimate import STARTING, Estimator, Known, work_of
from caged.products.study.records import specification
from caged.runs.planning.workload import auto_batch
from tests.products.study.plans import SMALL, plan_of
from tests.products.study.test_records import content_of


@pytest.fixture
def runs(tmp_path):
    return {run.name: run for run in plan_of(SMALL, tmp_path).runs}


def known(run, **changed):
    """A finished run of the plan on this CPU: 10 seconds for 20 epochs over 1,000 interactions."""
    config = specification(run.training).to_json()["config"]
    made = Known(
        data=run.data,
        protocol=run.protocol,
        folder=run.folder_name,
        method=run.method,
        adjusted=run.kind == "adjust",
        device="cpu",
        seconds=10.0,
        training=10.0,
        epochs=20,
        most_epochs=1000,
        interactions=1000,
        work=work_of(config, 1000),
        config=config,
        memory={"process_gib": 0.5},
    )
    return replace(made, **changed)


def test_runs_alike_say_it_themselves(runs):
    run = runs["first-honest-lightgcn-3"]
    like = [known(run, seconds=seconds, memory={"process_gib": seconds}) for seconds in (4.0, 6.0, 50.0)]
    found = Estimator([*like, known(runs["first-honest-wide-1"], seconds=999.0)], "cpu")(run)
    assert (found.seconds, found.memory, found.device_memory, found.basis) == (6.0 + STARTING, 50.0, None, "recorded")


def test_a_record_with_other_settings_at_the_same_place_is_scaled(runs):
    """The plan was changed since: twenty epochs then, three now."""
    run = runs["first-honest-lightgcn-1"]
    before = known(run)
    config = {**before.config, "train": {**before.config["train"], "epochs": 20}}
    found = Estimator([replace(before, config=config, most_epochs=20)], "cpu")(run)
    assert found.seconds == pytest.approx(3 * 10.0 / 20 + STARTING)
    assert found.basis == "scaled"


def test_another_variant_is_scaled_by_the_work_of_an_epoch(runs):
    wide, plain = runs["first-honest-wide-1"], runs["first-honest-lightgcn-1"]  # 32 instead of 256 columns
    found = Estimator([known(plain, epochs=2, most_epochs=3)], "cpu")(wide)
    # the plan caps the epochs of this dataset at 3; two of them took ten seconds at 256 columns
    assert found.seconds == pytest.approx(2 * 10.0 / 2 / 8 + STARTING)
    assert found.basis == "scaled"


def test_epochs_come_from_another_device_and_their_pace_from_this_one(runs):
    plain, second = runs["first-paper-lightgcn-1"], runs["second-honest-lightgcn-1"]
    of_gpu = known(plain, device="cuda", seconds=0.1, epochs=3, most_epochs=1000)
    here = known(second, epochs=5, most_epochs=5)  # ended at its limit: it says nothing about others
    found = Estimator([of_gpu, here], "cpu")(plain)
    ratio = work_of(specification(plain).to_json()["config"], 1000) / here.work
    assert found.seconds == pytest.approx(3 * 10.0 / 5 * ratio + STARTING)


def test_what_is_around_the_epochs_counts_once(runs):
    """A record of two epochs: four of its ten seconds read the data and tested."""
    plain, wide = runs["first-paper-lightgcn-1"], runs["first-honest-wide-1"]
    of_gpu = known(plain, device="cuda", epochs=3)
    found = Estimator([of_gpu, known(wide, training=6.0, epochs=2, most_epochs=2)], "cpu")(plain)
    ratio = work_of(specification(plain).to_json()["config"], 1000) / known(wide).work
    assert found.seconds == pytest.approx(3 * 6.0 / 2 * ratio + 4.0 + STARTING)


def test_a_method_without_epochs_takes_what_its_other_forms_took(runs):
    ease = runs["first-honest-ease-1"]
    forms = [known(ease, folder=f"ease-{n}", epochs=0, seconds=seconds) for n, seconds in enumerate((4.0, 6.0, 50.0))]
    found = Estimator([*forms, known(ease, data="other", epochs=0, seconds=900.0)], "cpu")(ease)
    assert (found.seconds, found.memory, found.basis) == (6.0 + STARTING, 0.5, "scaled")


@pytest.mark.parametrize("name", ["first-honest-ease-1", "first-honest-galore-1", "first-honest-adjusted-1"])
def test_what_nothing_is_known_about_is_unknown(runs, name):
    found = Estimator([known(runs["first-honest-lightgcn-1"])], "cpu")(runs[name])
    assert (found.seconds, found.basis) == (None, "unknown")


def test_records_of_another_device_alone_say_nothing(runs):
    run = runs["first-honest-lightgcn-1"]
    assert Estimator([known(run)], "cuda")(run).seconds is None


def test_a_plan_may_fix_the_device(runs):
    run = runs["first-honest-ease-1"]  # on CPU, wherever the study runs
    assert Estimator([known(run, device="cpu")], "cuda")(run).seconds == 10.0 + STARTING


def test_records_are_read_and_what_is_none_is_passed_over(runs, tmp_path):
    run = runs["first-honest-wide-1"]
    folder = (tmp_path / run.place).parent
    folder.mkdir(parents=True)
    dataset = {"name": "gowalla", "interactions": {"train": 1000}}
    content = content_of(run, dataset=dataset, training={"epochs": 20}, memory={"process_gib": 0.3})
    (folder / "seed1.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "seed2.json").write_text(json.dumps({**content, "status": "failed"}), encoding="utf-8")
    (folder / "seed3.json").write_text("{", encoding="utf-8")
    found = Estimator.from_records([tmp_path, tmp_path], "cpu")(run)
    assert (found.seconds, found.memory) == (5.0 + STARTING, 0.3)


def test_the_work_of_an_epoch():
    config = {"method": {"embedding_size": 8, "layers": 2}, "train": {"batch_size": 100}}
    assert work_of(config, 1000) == 10 * 1000 * 8 * 2
    automatic = {**config, "train": {"batch_size": "auto"}}
    assert work_of(automatic, 1000) == 1000 * 8 * 2  # one batch holds all
    assert work_of(automatic, 1_000_000) == math.ceil(1_000_000 / auto_batch(1_000_000)) * 1_000_000 * 8 * 2
    assert work_of({"method": {}, "train": {"batch_size": 1000}}, 1000) == 1000


def test_runs_that_shared_a_machine_count_with_their_share(runs, tmp_path):
    run = next(one for one in runs.values() if one.kind == "train")
    content = {
        "status": "finished",
        "spec": specification(run).to_json(),
        "dataset": {"name": run.data, "interactions": {"train": 1000}},
        "seconds": {"total": 40.0, "train": 32.0},
        "training": {"epochs": 5},
    }
    path = tmp_path / "seed1.json"
    for hardware, seconds in (({"device": "cpu"}, 40.0), ({"device": "cpu", "side_by_side": 4}, 10.0)):
        path.write_text(json.dumps({**content, "hardware": hardware}))
        read = Known.read(path)
        assert (read.seconds, read.training) == (seconds, 0.8 * seconds)
