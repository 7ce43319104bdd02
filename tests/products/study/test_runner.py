"""The runner with a stand-in for `caged`, which does to records and folders what that would do, in no time."""

from __future__ import annotations

import json
import signal
import sys
import time
from dataclasses import replace

import pytest

from caged.errors import RunError
from caged.products.study import Study, run_study
from caged.products.study import runner as module
from caged.products.study.records import market_file
from caged.products.study.runner import Runner
from caged.runs.lock import locked
from tests.products.study.test_records import content_of
from tests.products.study.test_schedule import World

STAND_IN = """
import json, os, signal, sys, time
from pathlib import Path

here = Path(sys.argv[1])
arguments = sys.argv[2:]
folder = Path(arguments[-1] if "--resume" not in arguments else arguments[arguments.index("--resume") + 1])
told = json.loads((here / "told.json").read_text()).get(folder.name, {})
with (here / "calls.txt").open("a") as file:
    print(json.dumps([folder.name, time.monotonic(), arguments]), file=file)
(here / "shared.txt").write_text(os.environ["CAGED_SIDE_BY_SIDE"])
(here / "session.txt").write_text(str(os.getsid(0) == os.getpid()))
stopped = []
signal.signal(signal.SIGINT, lambda *_: stopped.append(1))
until = time.monotonic() + told.get("seconds", 0)
while time.monotonic() < until and len(stopped) <= told.get("deaf", 0):
    time.sleep(0.01)
if stopped:
    sys.exit(130)
if "status" in told:
    content = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**content, "status": told["status"]}))
if "kill" in told:
    os.kill(os.getpid(), told["kill"])
print(told.get("says", ""))
if told.get("code", 0) == 0 or told.get("recorded"):
    record = Path(told["record"])
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({**told["content"], **told.get("changed", {})}))
with (here / "calls.txt").open("a") as file:
    print(json.dumps([folder.name, time.monotonic(), None]), file=file)
if "kill_after" in told:
    os.kill(os.getpid(), told["kill_after"])
sys.exit(told.get("code", 0))
"""


class Stage(World):
    def __init__(self, folder):
        super().__init__(folder)
        self.folder = folder
        (folder / "caged.py").write_text(STAND_IN)

    def run(self, *names, told=None, schedule=None, **options):
        content = {
            name: {
                "record": str(self.places.record(run)),
                "content": content_of(run),
                **(told or {}).get(name, {}),
            }
            for name, run in self.runs.items()
        }
        (self.folder / "told.json").write_text(json.dumps(content))
        program = (sys.executable, "-S", str(self.folder / "caged.py"), str(self.folder))
        made = Runner(self.places, program=program, **options)
        return made.run((schedule or self.schedule(*names)).tasks)

    @property
    def calls(self):
        """Name, moment, arguments; the end of a process has no arguments."""
        path = self.folder / "calls.txt"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def started(self):
        return [name for name, _, arguments in self.calls if arguments is not None]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "POLL", 0.01)
    monkeypatch.setattr(module, "PATIENCE", (0.5, 0.5))
    monkeypatch.setattr(module, "make_market", lambda *_: None)


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


START = {"run": "x", "method": "lightgcn", "seed": 1, "config": {}}
FIRST, SECOND, THIRD = "first-honest-wide-1", "second-honest-ease-1", "second-honest-lightgcn-1"


def names(runs):
    return [run.name for run in runs]


def test_runs_are_made_in_their_order(stage):
    outcome = stage.run(FIRST, SECOND, THIRD)
    assert names(outcome.finished) == stage.started == [FIRST, SECOND, THIRD]
    assert not stage.schedule(FIRST, SECOND, THIRD).tasks


def test_workers_run_side_by_side_and_a_run_waits_for_what_it_needs(stage):
    lightgcn, galore = "first-honest-lightgcn-1", "first-honest-galore-1"
    outcome = stage.run(lightgcn, galore, FIRST, workers=3, told={lightgcn: {"seconds": 0.3}, FIRST: {"seconds": 0.3}})
    assert len(outcome.finished) == 3
    order = [(name, arguments is not None) for name, _, arguments in stage.calls]
    assert order.index((FIRST, True)) < order.index((lightgcn, False))  # side by side
    assert order.index((lightgcn, False)) < order.index((galore, True))


def test_runs_know_how_many_share_the_machine(stage):
    stage.run(FIRST, SECOND, workers=2)
    assert (stage.folder / "shared.txt").read_text() == "2"
    stage.run(THIRD, workers=8)
    assert (stage.folder / "shared.txt").read_text() == "1"


def test_a_record_says_how_many_shared_the_machine_on_average(stage):
    """The first shares it for a third of its time."""
    stage.run(FIRST, SECOND, workers=2, told={FIRST: {"seconds": 1.5}, SECOND: {"seconds": 0.4}})
    hardware = [json.loads(stage.places.record(stage.runs[name]).read_text())["hardware"] for name in (FIRST, SECOND)]
    assert 1.1 < hardware[0]["side_by_side"] < 1.6
    assert 1.8 < hardware[1]["side_by_side"] <= 2.0
    stage.run(THIRD, workers=2)
    assert json.loads(stage.places.record(stage.runs[THIRD]).read_text())["hardware"] == {"device": "cpu"}


def test_a_run_does_not_start_if_it_fits_into_the_time_only_alone(stage):
    schedule = stage.schedule(FIRST, SECOND, seconds=20.0)
    outcome = stage.run(schedule=schedule, budget=30.0, workers=2, told={FIRST: {"seconds": 0.2}})
    order = [(name, arguments is not None) for name, _, arguments in stage.calls]
    assert order == [(FIRST, True), (FIRST, False), (SECOND, True), (SECOND, False)]
    assert len(outcome.finished) == 2


def test_a_run_that_does_not_fit_into_the_time_lets_shorter_ones_pass(stage):
    schedule = stage.schedule(FIRST, SECOND, seconds=50.0)
    schedule.tasks[1] = stage.schedule(SECOND, seconds=1.0).tasks[0]
    outcome = stage.run(schedule=schedule, budget=30.0)
    assert names(outcome.finished) == [SECOND]
    assert names(outcome.too_long) == [FIRST]


def test_at_the_end_of_the_budget_a_run_is_asked_to_stop(stage):
    begun = time.monotonic()
    outcome = stage.run(
        FIRST, SECOND, told={FIRST: {"seconds": 60}}, budget=0.5, schedule=stage.schedule(FIRST, SECOND, seconds=None)
    )
    assert time.monotonic() - begun < 5
    assert (names(outcome.stopped), names(outcome.waiting)) == ([FIRST], [SECOND])
    assert not outcome.failed


@pytest.mark.parametrize("deaf", [1, 9])
def test_a_run_that_does_not_stop_is_asked_again_and_then_killed(stage, deaf):
    schedule, begun = stage.schedule(FIRST, seconds=None), time.monotonic()
    outcome = stage.run(schedule=schedule, told={FIRST: {"seconds": 60, "deaf": deaf}}, budget=0.3)
    assert time.monotonic() - begun < 10
    assert names(outcome.stopped) == [FIRST]
    assert not (stage.places.record(stage.runs[FIRST])).exists()  # nothing is said about it that is not so


def test_it_stops_when_somebody_asks(stage):
    outcome = stage.run(FIRST, told={FIRST: {"seconds": 60}}, stop_requested=lambda: bool(stage.calls))
    assert names(outcome.stopped) == [FIRST]


def test_a_failure_is_recorded_with_its_reason_and_the_others_go_on(stage):
    outcome = stage.run(FIRST, SECOND, told={FIRST: {"code": 1, "says": "ValueError: no"}})
    assert names(outcome.finished) == [SECOND]
    assert {run.name: reason for run, reason in outcome.failed.items()} == {FIRST: "ValueError: no"}
    schedule = stage.schedule(FIRST)
    assert (schedule.tasks, list(schedule.failed.values())) == ([], ["ValueError: no"])


@pytest.mark.parametrize("what", [{"code": 1, "says": "no"}, {"kill": signal.SIGKILL}, {"seconds": 60}])
def test_a_record_outlives_its_run_being_made_again_for_another(stage, what):
    """Whether that fails, is killed or stopped."""
    lightgcn, galore = "first-honest-lightgcn-1", "first-honest-galore-1"
    stage.record(lightgcn, metrics={"recall@20": 0.5})
    path = stage.places.record(stage.runs[lightgcn])
    before = path.read_bytes()
    schedule = stage.schedule(galore, seconds=None)
    outcome = stage.run(schedule=schedule, told={lightgcn: what}, budget=0.5 if "seconds" in what else None)
    assert path.read_bytes() == before
    assert not outcome.finished
    assert "--record" not in stage.calls[0][2]


def test_a_record_stays_as_it_is_when_its_run_is_made_again_for_another(stage):
    lightgcn, galore = "first-honest-lightgcn-1", "first-honest-galore-1"
    stage.record(lightgcn, metrics={"recall@20": 0.5})
    before = stage.places.record(stage.runs[lightgcn]).read_bytes()
    other = str(stage.folder / "elsewhere" / "seed1.json")
    outcome = stage.run(schedule=stage.schedule(galore), told={lightgcn: {"record": other}})
    assert names(outcome.finished) == [lightgcn, galore]
    assert stage.places.record(stage.runs[lightgcn]).read_bytes() == before


@pytest.mark.parametrize(
    "end", [{"kill_after": signal.SIGABRT}, {"code": 1, "recorded": True}, {"code": 130, "recorded": True}]
)
def test_a_run_that_ends_badly_after_it_was_recorded_is_finished(stage, end, monkeypatch):
    """As one does that is asked to stop, or aborts, while Python ends."""
    shared = []
    monkeypatch.setattr(module, "say_shared", lambda record, runs: shared.append(record.run.name))
    outcome = stage.run(FIRST, told={FIRST: end})
    assert names(outcome.finished) == shared == [FIRST]
    record = json.loads(stage.places.record(stage.runs[FIRST]).read_text())
    assert record["status"] == "finished"
    assert "error" not in record


def test_what_is_refused_when_it_goes_on_is_not_recorded_as_failed(stage):
    """There may be too little memory now, and enough another day."""
    stage.fill_folder(FIRST, status="interrupted")
    outcome = stage.run(FIRST, told={FIRST: {"code": 2, "says": "error: it does not fit"}})
    assert list(outcome.refused.values()) == ["it does not fit"]
    assert not stage.places.record(stage.runs[FIRST]).exists()
    assert [task.action for task in stage.schedule(FIRST).tasks] == ["resume"]


def test_an_old_record_does_not_make_a_failed_run_finished(stage):
    """Of a run that another needs: its own record says nothing about how it went now."""
    lightgcn = "first-honest-lightgcn-1"
    stage.record(lightgcn)
    outcome = stage.run(schedule=stage.schedule("first-honest-galore-1"), told={lightgcn: {"code": 1, "says": "no"}})
    assert names(outcome.failed) == [lightgcn]


def test_what_was_finished_meanwhile_is_not_made_again(stage, monkeypatch):
    """By another study, after this one looked."""
    again = []
    monkeypatch.setattr(module, "record_again", lambda run, places: again.append(run.name))
    schedule = stage.schedule(FIRST)
    stage.fill_folder(FIRST)
    assert names(stage.run(schedule=schedule).finished) == again == [FIRST]
    assert not stage.started


def test_a_folder_that_somebody_works_on_is_left_alone(stage):
    schedule = stage.schedule(FIRST)
    stage.fill_folder(FIRST, status="running")
    folder = stage.places.folder(stage.runs[FIRST])
    with locked(folder):
        outcome = stage.run(schedule=schedule)
        assert (folder / "run.json").exists()
    (reason,) = outcome.refused.values()
    assert "has been working on" in reason
    assert not stage.places.record(stage.runs[FIRST]).exists()


def test_two_studies_do_not_work_in_one_place(stage, tmp_path):
    study = Study(stage.plan, stage.places, [], {}, stage.schedule(FIRST), "cpu")
    stage.places.runs.mkdir()
    with locked(stage.places.runs), pytest.raises(RunError, match="has been working on"):
        run_study(study)


def test_a_market_is_told_beside_its_records(stage, monkeypatch):
    stage.run(FIRST)
    path = market_file(stage.places.results, stage.runs[FIRST])
    assert json.loads(path.read_text())["parameters"]["seed"] == 1
    schedule = stage.schedule("first-honest-lightgcn-1")
    path.write_text('{"parameters": {"seed": 5}}')
    (reason,) = stage.run(schedule=schedule).refused.values()
    assert "on a market of other parameters" in reason
    path.unlink()
    (reason,) = stage.run(schedule=schedule).refused.values()
    assert "is missing; restore it, or move the records away" in reason
    assert not path.exists()  # what is recorded is not said to be of today's market


def test_a_run_that_failed_again_says_why_it_did_now(stage):
    stage.record(FIRST, status="failed", error="the old reason")
    schedule = stage.schedule(FIRST, retry_failed=True)
    outcome = stage.run(schedule=schedule, told={FIRST: {"code": 1, "says": "error: the new reason"}})
    assert list(outcome.failed.values()) == ["the new reason"]
    assert json.loads(stage.places.record(stage.runs[FIRST]).read_text())["error"] == "the new reason"


def test_a_killed_process_is_a_failure(stage):
    outcome = stage.run(FIRST, told={FIRST: {"kill": signal.SIGKILL}})
    (reason,) = outcome.failed.values()
    assert reason.startswith("its process was ended by SIGKILL")


def test_the_reason_that_a_run_recorded_itself_stays(stage):
    changed = {"status": "failed", "error": "the loss became nan"}
    outcome = stage.run(FIRST, told={FIRST: {"code": 2, "says": "error: x", "recorded": True, "changed": changed}})
    assert list(outcome.failed.values()) == ["the loss became nan"]


def test_bad_input_is_refused_and_not_recorded(stage):
    outcome = stage.run(FIRST, told={FIRST: {"code": 2, "says": "error: no such preset"}})
    assert list(outcome.refused.values()) == ["no such preset"]
    assert not stage.places.record(stage.runs[FIRST]).exists()


def test_bad_input_that_a_run_met_later_is_a_failure(stage):
    """Such as a loss that became nan: it had begun."""
    told = {FIRST: {"code": 2, "says": "error: the loss is nan", "status": "failed"}}
    schedule = stage.schedule(FIRST)
    stage.fill_folder(FIRST, status="running")
    schedule.tasks[0] = replace(schedule.tasks[0], action="resume")
    outcome = stage.run(schedule=schedule, told=told)
    assert list(outcome.failed.values()) == ["the loss is nan"]
    assert json.loads(stage.places.record(stage.runs[FIRST]).read_text())["status"] == "failed"


def test_what_goes_on_keeps_its_folder(stage):
    stage.fill_folder(FIRST, status="interrupted")
    stage.run(FIRST)
    assert (stage.places.folder(stage.runs[FIRST]) / "run.json").exists()


def test_processes_have_their_threads_and_a_session_of_their_own(stage):
    """Ctrl-C on the terminal reaches the study alone, which passes it on."""
    stage.run(FIRST, threads=3)
    arguments = stage.calls[0][2]
    assert arguments[arguments.index("--threads") + 1] == "3"
    assert (stage.folder / "session.txt").read_text() == "True"


def test_a_run_whose_start_failed_is_not_tried(stage):
    lightgcn, galore = "first-honest-lightgcn-1", "first-honest-galore-1"
    outcome = stage.run(lightgcn, galore, told={lightgcn: {"code": 1, "says": "no"}})
    assert stage.started == [lightgcn]
    (reason,) = outcome.refused.values()
    assert reason == "first-honest-lightgcn-1, which it needs, was not made: no"


def test_a_stopped_run_goes_on_and_a_failed_one_begins_anew(stage):
    stage.fill_folder(FIRST, status="interrupted")
    assert names(stage.run(FIRST).finished) == [FIRST]
    assert "--resume" in stage.calls[0][2]
    stage.fill_folder(SECOND, status="failed")
    stage.record(SECOND, status="failed", error="x")
    stage.run(schedule=stage.schedule(SECOND, retry_failed=True))
    assert not stage.places.folder(stage.runs[SECOND]).exists()


def test_a_record_that_is_not_of_the_run_is_said(stage):
    outcome = stage.run(FIRST, told={FIRST: {"changed": {"init": START}}})
    (reason,) = outcome.refused.values()
    assert "not one of the plan: it starts from another run, x" in reason
