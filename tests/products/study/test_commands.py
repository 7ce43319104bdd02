from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from caged.products.study.commands import Places, command, resume_command
from tests.products.study.plans import SMALL, plan_of

PLACES = Places(Path("results"), Path("runs"))


@pytest.fixture
def runs(tmp_path):
    return {run.name: run for run in plan_of(SMALL, tmp_path).runs}


def test_a_training_has_all_that_the_plan_says(runs):
    assert command(runs["first-honest-wide-1"], PLACES) == [
        *("train", "--data", "gowalla", "--protocol", "honest", "--method", "lightgcn", "--preset", "epinions"),
        *("--set", "train.epochs=3", "--set", "method.embedding_size=32", "--seed", "1"),
        *("--record", "results", "--variant", "wide", "--no-report", "--out", "runs/first-honest-wide-1"),
    ]


def test_what_starts_from_a_run_names_its_folder(runs):
    made = command(runs["first-honest-galore-1"], PLACES)
    assert made[made.index("--init") + 1] == "runs/first-honest-lightgcn-1"


def test_an_adjustment_is_a_command_of_its_own(runs):
    assert command(runs["second-honest-adjusted-2"], PLACES, device="cpu") == [
        *("adjust", "runs/second-honest-lightgcn-2", "--keep", "99%", "--device", "cpu"),
        *("--record", "results", "--variant", "adjusted", "-o", "runs/second-honest-adjusted-2"),
    ]


def test_the_plan_wins_over_device_and_threads_of_the_study(runs):
    run = runs["first-honest-ease-1"]
    made = command(run, PLACES, device="cuda", threads=3)
    assert made[made.index("--device") + 1] == "cpu"
    assert made[made.index("--threads") + 1] == "3"
    made = command(replace(run, threads=1), PLACES, threads=3)
    assert made[made.index("--threads") + 1] == "1"


def test_a_market_has_the_form_that_its_protocol_needs(runs):
    run = replace(runs["second-honest-lightgcn-1"], data="shop", market=(("seed", 1),))
    assert PLACES.data(run) == "runs/data/shop"
    assert PLACES.data(replace(run, protocol="paper")) == "runs/data-as-text/shop"


def test_what_is_recorded_already_is_not_recorded_again(runs):
    for run in (runs["first-honest-wide-1"], runs["second-honest-adjusted-2"]):
        assert not {"--record", "--variant"} & {*command(run, PLACES, record=False)}
    assert not {"--record", "--variant"} & {*resume_command(runs["first-honest-wide-1"], PLACES, record=False)}


def test_going_on_names_the_folder_and_the_record(runs):
    assert resume_command(runs["first-honest-wide-1"], PLACES) == [
        *("train", "--resume", "runs/first-honest-wide-1", "--record", "results", "--variant", "wide", "--no-report"),
    ]
