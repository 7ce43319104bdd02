from __future__ import annotations

import json

import pytest

from caged.products.study import Wishes, recorded
from caged.products.study.commands import Places
from caged.products.study.estimate import STARTING, Estimate
from caged.products.study.schedule import make_schedule, with_needed
from tests.products.study.plans import SMALL, plan_of
from tests.products.study.test_records import content_of, write

TEXT = SMALL.replace('data = "gowalla"', "simulate = { seed = 1 }").replace(
    'data = "ml-100k"', "simulate = { seed = 2 }"
)


class World:
    """A plan whose data are markets, so that all of it can be run anywhere."""

    def __init__(self, folder, text=TEXT):
        self.plan = plan_of(text, folder)
        self.places = Places(folder / "results", folder / "runs")
        self.runs = {run.name: run for run in self.plan.runs}

    def schedule(self, *names, seconds=100.0, has_cuda=False, **wishes):
        runs = [self.runs[name] for name in names] if names else list(self.plan.runs)
        found = recorded(with_needed(runs), self.places.results)
        wanted = Wishes(**wishes)
        return make_schedule(runs, found, self.places, lambda run: Estimate(seconds), has_cuda=has_cuda, wishes=wanted)

    def record(self, name, **changed):
        write(self.runs[name], self.places.results, **changed)

    def fill_folder(self, name, **changed):
        folder = self.places.folder(self.runs[name])
        folder.mkdir(parents=True)
        content = content_of(self.runs[name], **changed)
        content["spec"] |= {"seed": self.runs[name].seed, "protocol": self.runs[name].protocol}
        content |= {"format": 1, "threads": 1, "resumed": 0, "data_path": None}
        (folder / "run.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def done(schedule):
    return [(task.run.name, task.action) for task in schedule.tasks]


def test_everything_is_to_be_run_where_nothing_is_recorded(world):
    schedule = world.schedule()
    assert [task.run for task in schedule.tasks] == list(world.plan.runs)
    assert schedule.seconds == 100.0 * len(world.plan.runs)


def test_what_is_recorded_is_not_run_again(world):
    world.record("first-honest-wide-1")
    schedule = world.schedule("first-honest-wide-1", "second-honest-ease-1")
    assert done(schedule) == [("second-honest-ease-1", "start")]
    assert [run.name for run in schedule.finished] == ["first-honest-wide-1"]


def test_what_failed_is_tried_again_only_when_told(world):
    world.record("first-honest-wide-1", status="failed", error="memory ran out")
    schedule = world.schedule("first-honest-wide-1")
    assert not schedule.tasks
    assert list(schedule.failed.values()) == ["memory ran out"]
    assert done(world.schedule("first-honest-wide-1", retry_failed=True)) == [("first-honest-wide-1", "start")]


def test_a_needed_run_is_trained_again_where_its_folder_is_gone(world):
    world.record("first-honest-lightgcn-1")
    schedule = world.schedule("first-honest-galore-1")
    assert done(schedule) == [("first-honest-lightgcn-1", "start"), ("first-honest-galore-1", "start")]
    assert [task.wanted for task in schedule.tasks] == [False, True]
    assert [task.recorded for task in schedule.tasks] == [True, False]
    world.fill_folder("first-honest-lightgcn-1")
    assert done(world.schedule("first-honest-galore-1")) == [("first-honest-galore-1", "start")]


def test_a_needed_run_that_failed_keeps_others_back(world):
    world.record("first-honest-lightgcn-1", status="failed", error="memory ran out")
    schedule = world.schedule("first-honest-galore-1")
    assert not schedule.tasks
    (reason,) = schedule.blocked.values()
    assert reason == "first-honest-lightgcn-1, which it needs, failed before: memory ran out"


def test_a_needed_run_whose_record_is_another_keeps_others_back(world):
    world.record("first-honest-lightgcn-1", init={"run": "x", "method": "lightgcn", "seed": 1, "config": {}})
    schedule = world.schedule("first-honest-galore-1")
    assert not schedule.tasks
    (reason,) = schedule.blocked.values()
    assert reason.startswith("first-honest-lightgcn-1, which it needs: ")
    assert reason.endswith("it starts from another run, x; move it away")


def test_a_stopped_run_never_looks_as_if_nothing_was_left(world):
    world.fill_folder("first-honest-wide-1", status="running", seconds={"total": 500.0})
    assert world.schedule("first-honest-wide-1").seconds == STARTING


def test_what_to_do_about_a_record_is_said_once(world):
    world.record("first-honest-wide-1")
    world.places.record(world.runs["first-honest-wide-1"]).write_text('{"status": "fin')
    (reason,) = world.schedule("first-honest-wide-1").blocked.values()
    assert "does not count: " in reason
    assert "is not readable JSON" in reason
    assert not reason.endswith("move it away")


@pytest.mark.parametrize("content", ['{"spec": []}', "[]", '{"spec": {"config": 3}}', '{"spec'])
def test_a_damaged_folder_is_said(world, content):
    folder = world.places.folder(world.runs["first-honest-wide-1"])
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(content)
    (reason,) = world.schedule("first-honest-wide-1").blocked.values()
    assert "its run.json is damaged" in reason


def test_a_stopped_run_goes_on_where_its_folder_is_and_starts_anew_elsewhere(world):
    world.record("first-honest-wide-1", status="interrupted")
    assert done(world.schedule("first-honest-wide-1")) == [("first-honest-wide-1", "start")]
    world.fill_folder("first-honest-wide-1", status="interrupted")
    schedule = world.schedule("first-honest-wide-1")
    assert done(schedule) == [("first-honest-wide-1", "resume")]
    assert schedule.seconds == 95.0  # five are spent
    assert done(world.schedule("first-honest-wide-1", restart=True)) == [("first-honest-wide-1", "start")]


def test_of_a_run_that_is_finished_here_only_the_record_is_written(world):
    world.fill_folder("first-honest-wide-1")
    schedule = world.schedule("first-honest-wide-1")
    assert done(schedule) == [("first-honest-wide-1", "record")]
    assert schedule.seconds == 0


def test_a_run_that_lacks_only_its_record_needs_nothing_more(world, tmp_path, monkeypatch):
    """Neither the run that it started from nor the data."""
    for name in ("first-honest-galore-1", "first-honest-adjusted-1"):
        init = content_of(world.runs[name]).get("init")
        world.fill_folder(name, **({"init": init} if init else {}))
        assert done(world.schedule(name)) == [(name, "record")]
    (tmp_path / "known").mkdir()
    elsewhere = World(tmp_path / "known", SMALL)
    monkeypatch.setenv("CAGED_DATA", str(tmp_path / "nothing"))
    assert elsewhere.schedule("first-honest-wide-1").blocked
    elsewhere.fill_folder("first-honest-wide-1")
    assert done(elsewhere.schedule("first-honest-wide-1")) == [("first-honest-wide-1", "record")]


def test_a_folder_of_another_run_is_left_alone(world):
    world.fill_folder("first-honest-wide-1")
    path = world.places.folder(world.runs["first-honest-wide-1"]) / "run.json"
    content = json.loads(path.read_text())
    content["spec"]["config"]["method"]["embedding_size"] = 8
    path.write_text(json.dumps(content))
    (reason,) = world.schedule("first-honest-wide-1").blocked.values()
    assert "holds another run: method.embedding_size is 8" in reason


def test_a_record_of_another_run_is_left_alone(world):
    world.record("first-honest-wide-1", init={"run": "x", "method": "lightgcn", "seed": 1, "config": {}})
    (reason,) = world.schedule("first-honest-wide-1").blocked.values()
    assert "does not count: it starts from another run, x; move it away" in reason


def test_what_this_machine_lacks_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("CAGED_DATA", str(tmp_path / "nothing"))
    world = World(tmp_path, SMALL.replace('device = "cpu"', 'device = "cuda"').replace("ml-100k", "no-such-data"))
    reasons = {run.name: reason for run, reason in world.schedule().blocked.items()}
    assert reasons["first-honest-ease-1"] == "it is to run on cuda, and there is none here"
    assert "gowalla" in reasons["first-honest-galore-1"]
    assert "caged data get" in reasons["first-honest-wide-1"]
    assert reasons["second-honest-lightgcn-1"].startswith("its data, no-such-data, is not here; give")
