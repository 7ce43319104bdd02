"""Recording work: the order of things with a device that is pretended, and that putting back leaves no trace.

What a recording on CUDA computes is tested beside each user of it, on a GPU.
"""

from __future__ import annotations

import contextlib
import gc
import weakref

import pytest
import torch

import caged.models.advdrop.method
import caged.models.caged.passes
import caged.training.loop
import caged.training.step
from caged.cuda_graph import WARM_UP_RUNS, recorded
from caged.graph import BipartiteGraph
from caged.models import METHODS
from caged.models.advdrop.method import AdvDrop, AdvDropConfig
from caged.models.caged.passes import WrittenPasses
from caged.seeding import Generators
from caged.training import Loop, TrainConfig
from caged.training.step import PlainSteps, RecordedSteps
from tests.graph.graphs import random_graph
from tests.models.caged.test_passes import Trained
from tests.models.logs import skewed

# ---------------------------------------------------------------- the order of things


class Device:
    """As much of torch.cuda as a recording needs; `events` is what happened."""

    def __init__(self, monkeypatch, *, fails=False):
        self.events, self.fails = [], fails
        events = self.events

        class Stream:
            def wait_stream(self, other):
                events.append("wait")

        class Graph:
            def register_generator_state(self, generator):
                events.append(f"register {getattr(generator, 'name', '')}")

            def replay(self):
                events.append("replay")

        @contextlib.contextmanager
        def capture(graph):
            events.append("record")
            yield
            if fails:
                raise RuntimeError("operation not permitted\nmore of it")

        monkeypatch.setattr(torch.cuda, "Stream", Stream)
        monkeypatch.setattr(torch.cuda, "current_stream", Stream)
        monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
        monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
        monkeypatch.setattr(torch.cuda, "graph", capture)

    def record(self):
        def note(event):
            return lambda: self.events.append(event)

        class Stream:
            name = "noise"
            clone_state = staticmethod(lambda: "clone")
            graphsafe_set_state = staticmethod(lambda state: self.events.append(f"set {state}"))

        return recorded(note("work"), name="this", generators=lambda: [Stream()], put_back=note("put back"))


def test_every_run_of_the_warm_up_is_put_back_before_recording(monkeypatch):
    device = Device(monkeypatch)
    replay = device.record()
    warm_up = ["wait", *["work", "put back"] * WARM_UP_RUNS, "wait"]
    assert device.events == [*warm_up, "register noise", "record", "work"]
    replay()
    assert device.events[-1] == "replay"


def test_what_cannot_be_recorded_is_put_back_and_told(monkeypatch, caplog):
    device = Device(monkeypatch, fails=True)
    assert device.record() is None
    assert device.events[-4:] == ["record", "work", "set clone", "put back"]
    [message] = caplog.messages
    assert message == (
        "this cannot be recorded as a CUDA graph (operation not permitted); it runs as plain calls, slower"
    )


# ---------------------------------------------------------------- putting back leaves no trace


def pretended(work, *, name, generators, put_back):
    """Warms up as a recording does; then `work` itself is what a replay would do."""
    for _ in range(WARM_UP_RUNS):
        work()
        put_back()
    return work


def cannot(work, *, name, generators, put_back):
    pretended(work, name=name, generators=generators, put_back=put_back)


def plain_steps(method, optimizer, generators, *, record):
    return PlainSteps(method, optimizer)


def recorded_steps(method, optimizer, generators, *, record):
    return RecordedSteps(method, optimizer, generators)


def trained(monkeypatch, name, make_steps):
    """Two epochs per stage, an adversary and an estimator at work where the method has one."""
    monkeypatch.setattr(caged.training.loop, "make_steps", make_steps)
    known = METHODS[name]
    short = {"interval": 1, "adv_steps": 2} if name == "advdrop" else {}
    method = known.method(known.config(embedding_size=8, **short))
    config = TrainConfig(epochs=2, batch_size=48, learning_rate=0.01, patience=None)
    losses = []

    class Watch:
        def epoch(self, record):
            losses.append(record["loss"])

    graph = BipartiteGraph.from_interactions(skewed())
    Loop(method, graph, config, Generators(1), None, observers=(Watch(),)).run()
    return method.state(), losses


@pytest.fixture(
    scope="module", params=[name for name, known in METHODS.items() if known.method(known.config()).stages()]
)
def plain(request):
    """A method, and what plain steps make of it."""
    with pytest.MonkeyPatch.context() as patched:
        return request.param, *trained(patched, request.param, plain_steps)


@pytest.mark.parametrize("recording", [pretended, cannot])
def test_recorded_steps_are_plain_steps(monkeypatch, plain, recording):
    """Bit for bit: whatever a step changes is in the state of its method, of the optimiser or of a random stream."""
    name, state, expected = plain
    monkeypatch.setattr(caged.training.step, "recorded", recording)
    found, losses = trained(monkeypatch, name, recorded_steps)
    assert losses == expected
    assert found.scalars == state.scalars
    for part, values in state.tensors.items():
        assert torch.equal(found.tensors[part], values), part


@pytest.mark.parametrize("recording", [pretended, cannot])
@pytest.mark.parametrize("rescale", ["keep_prob", "prob"])
def test_recording_the_adversary_leaves_no_trace(monkeypatch, rescale, recording):
    states = []
    for record in (False, True):
        method = AdvDrop(AdvDropConfig(embedding_size=8, rescale=rescale))
        method.prepare(random_graph(), Generators(1))
        monkeypatch.setattr(caged.models.advdrop.method, "recorded", recording)
        method._record = record
        for _ in range(2):
            method._adversarial_phase(3)
        assert (method._replay is not None) == (record and recording is pretended)
        states.append(method.state().tensors)
    for name, values in states[0].items():
        assert torch.equal(states[1][name], values), name


@pytest.mark.parametrize("recording", [pretended, cannot])
def test_recording_the_estimator_leaves_no_trace(monkeypatch, recording):
    monkeypatch.setattr(caged.models.caged.passes, "recorded", recording)
    one, other = Trained(WrittenPasses, record=True), Trained(WrittenPasses, record=False)
    for _ in range(2):
        assert one.run(2) == other.run(2)
    for name, values in other.numbers.items():
        assert torch.equal(one.numbers[name], values), name
    assert torch.equal(one.estimator.noise.get_state(), other.estimator.noise.get_state())


def test_a_recording_is_freed_with_its_owner(monkeypatch):
    """Not when the garbage collector comes by: it holds memory of the device, of which the collector knows nothing."""
    device = Device(monkeypatch)
    trained = Trained(WrittenPasses, record=True)
    trained.run()
    assert "replay" in device.events
    passes = weakref.ref(trained.passes)
    gc.disable()
    try:
        del trained
        assert passes() is None
    finally:
        gc.enable()
