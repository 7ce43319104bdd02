from __future__ import annotations

import json

import pytest

from caged.products.study import recorded
from caged.products.study.failures import reason_in, record_failure
from tests.products.study.plans import SMALL, plan_of
from tests.products.study.test_records import write


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("epoch 1\nerror: the loss became nan\n", 2, "the loss became nan"),
        ("Traceback\nZeroDivisionError: division\n", 1, "ZeroDivisionError: division"),
        ("", 3, "its process ended with exit code 3"),
        ("epoch 1\n", -9, "its process was ended by SIGKILL, as systems do when memory runs out"),
        ("epoch 1\n", -11, "its process was ended by SIGSEGV"),
    ],
)
def test_why_a_process_failed(tmp_path, text, code, said):
    log = tmp_path / "log.txt"
    log.write_text(text, encoding="utf-8")
    assert reason_in(log, code) == said


@pytest.mark.parametrize(
    "name", ["first-honest-wide-1", "first-honest-galore-1", "second-honest-adjusted-1", "first-honest-ease-1"]
)
def test_the_failure_of_a_run_that_wrote_nothing_is_recorded(tmp_path, name):
    run = next(run for run in plan_of(SMALL, tmp_path).runs if run.name == name)
    missing = recorded([run], tmp_path)[run]
    record_failure(run, missing, "it was killed in /home/ann/runs", ["caged", "train"])
    found = recorded([run], tmp_path)[run]
    assert (found.state, found.reason) == ("failed", "it was killed in runs")


def test_what_a_killed_run_recorded_stays(tmp_path):
    run = plan_of(SMALL, tmp_path).runs[0]
    write(run, tmp_path, status="running")
    record_failure(run, recorded([run], tmp_path)[run], "it was killed", [])
    content = json.loads((tmp_path / run.place).read_text())
    assert (content["status"], content["error"], content["seconds"]) == ("failed", "it was killed", {"total": 5.0})
