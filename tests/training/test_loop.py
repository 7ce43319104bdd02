"""The loop: order of an epoch, early stopping, best state, optimiser hygiene, stages, resume, failure."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from caged.errors import RunError, TrainingError
from caged.graph import BipartiteGraph, Tables
from caged.models import Losses, Method, Stage, State
from caged.models.contract import DotScorer
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.seeding import Generators
from caged.training import EarlyStopping, Interrupted, Loop, TrainConfig, load_checkpoint
from tests.models.logs import skewed

CONFIG = TrainConfig(epochs=5, batch_size=64, learning_rate=0.01, patience=None, checkpoint_seconds=0)


class Scripted(Method[None]):
    """One number that every epoch moves; keeps a diary of what the loop does to it."""

    def __init__(self, stages=None):
        super().__init__(None)
        self._stages = stages or (Stage("train"),)
        self.diary = []

    def stages(self):
        return self._stages

    def prepare(self, graph, generators):
        self.graph = graph
        self.value = torch.nn.Parameter(torch.zeros(1))
        self.updates = 0

    def parameters(self, stage):
        return [{"params": [self.value]}]

    def begin_epoch(self, ctx):
        self.diary.append(f"begin {ctx.stage} {ctx.epoch}")

    def loss(self, batch):
        return Losses(-self.value.sum() * batch.weight.sum(), {"value": self.value.sum().detach()})

    def end_epoch(self, ctx):
        self.diary.append(f"end {ctx.epoch} improved={ctx.improved} validated={ctx.metrics is not None}")
        self.updates += ctx.improved
        ctx.log["updates"] = self.updates

    def finish(self, ctx):
        self.diary.append("finish")

    def scorer(self):
        self.diary.append("score")
        return DotScorer(Tables(self.value.detach().expand(2, 1), torch.ones(2, 1)))

    def state(self):
        return State({"value": self.value.data}, {"updates": self.updates})

    def load_scalars(self, scalars):
        self.updates = scalars["updates"]


def scripted_loop(method, values, config=CONFIG, **options):
    """A loop whose validation returns the scripted values, one by one."""
    script = iter(values)
    return Loop(
        method,
        BipartiteGraph.from_interactions(skewed()),
        config,
        Generators(1),
        lambda scorer: {"recall@20": next(script)},
        **options,
    )


class Recorder:
    def __init__(self):
        self.records = []

    def epoch(self, record):
        self.records.append(record)


def lightgcn_loop(folder=None, *, config=CONFIG, observers=(), seed=1, stop=lambda: False, method=None):
    log = skewed()

    def validate(scorer):
        return {"recall@20": float(scorer(torch.arange(log.user_count)).std())}

    return Loop(
        method or LightGCN(LightGCNConfig(embedding_size=8)),
        BipartiteGraph.from_interactions(log),
        config,
        Generators(seed),
        validate,
        folder=folder,
        stored=None if folder is None else load_checkpoint(folder),
        observers=observers,
        stop_requested=stop,
    )


def test_order_of_an_epoch():
    """train, validate, snapshot, end_epoch: the hook sees the verdict of its own epoch."""
    method = Scripted()
    scripted_loop(method, [0.1, 0.2, 0.2, 0.3, 0.1]).run()
    assert method.diary[:3] == ["begin train 1", "score", "end 1 improved=True validated=True"]
    assert [line for line in method.diary if line.startswith("end")] == [
        "end 1 improved=True validated=True",
        "end 2 improved=True validated=True",
        "end 3 improved=False validated=True",
        "end 4 improved=True validated=True",
        "end 5 improved=False validated=True",
    ]
    assert method.diary[-1] == "finish"


def test_best_state_is_restored_as_it_was_before_end_epoch():
    method = Scripted()
    progress = scripted_loop(method, [0.1, 0.2, 0.2, 0.3, 0.1]).run()
    assert progress.stopping.best_epoch == 4
    assert method.updates == 2  # updates made in epochs 1 and 2; the one of epoch 4 came after its snapshot
    single = Scripted()
    scripted_loop(single, [0.1] * 4, dataclasses.replace(CONFIG, epochs=4)).run()
    assert 0 < single.value.item() < method.value.item()  # best of `single` is epoch 1, of `method` epoch 4


def test_epochs_without_validation_never_improve():
    method = Scripted()
    recorder = Recorder()
    config = dataclasses.replace(CONFIG, validate_every=2)
    scripted_loop(method, [0.1, 0.2, 0.3], config, observers=(recorder,)).run()
    assert [record["improved"] for record in recorder.records] == [False, True, False, True, True]
    assert [record["validation"] is None for record in recorder.records] == [True, False, True, False, False]


def test_early_stopping_with_patience():
    recorder = Recorder()
    config = dataclasses.replace(CONFIG, epochs=50, patience=2)
    progress = scripted_loop(Scripted(), [0.3, 0.2, 0.3, 0.9], config, observers=(recorder,)).run()
    assert len(recorder.records) == 3
    assert progress.stopping.best_epoch == 1


def test_patience_none_never_stops():
    assert not EarlyStopping(None, strikes=10**6).exhausted


def test_the_first_validation_always_counts_even_at_zero():
    method = Scripted()
    assert scripted_loop(method, [0.0] * 5).run().stopping.best_epoch == 1


def test_stages_run_in_order_each_with_its_own_best():
    method = Scripted((Stage("first", epochs=2), Stage("second", epochs=3, fresh_optimizer=True)))
    recorder = Recorder()
    scripted_loop(method, [0.9, 0.1, 0.2, 0.3, 0.1], observers=(recorder,)).run()
    assert [(r["stage"], r["epoch"], r["improved"]) for r in recorder.records] == [
        ("first", 1, True),
        ("first", 2, False),
        ("second", 1, True),
        ("second", 2, True),
        ("second", 3, False),
    ]


@pytest.mark.parametrize("start", [0.5, 0.2])
def test_the_start_of_a_stage_may_be_its_best_state(start):
    """Where it counts, it is epoch 0, before the first batch; its validation stands in the first line of the stage."""
    method = Scripted((Stage("first", epochs=2), Stage("second", epochs=2, start_counts=True)))
    recorder = Recorder()
    progress = scripted_loop(method, [0.1, 0.5, start, 0.3, 0.4], observers=(recorder,)).run()
    assert progress.stopping.best_epoch == (0 if start == 0.5 else 2)
    assert ["start" in line for line in recorder.records] == [False, False, True, False]
    assert recorder.records[2]["start"] == {"recall@20": start}
    assert [line["best_epoch"] for line in recorder.records] == ([1, 2, 0, 0] if start == 0.5 else [1, 2, 1, 2])
    before = Scripted((Stage("first", epochs=2),))
    scripted_loop(before, [0.1, 0.5]).run()
    assert torch.equal(method.value, before.value) == (start == 0.5)
    assert [stage.epochs for stage in progress.decided] == [2, 0 if start == 0.5 else 2]  # what a refit repeats


def test_a_start_without_validation_is_no_candidate():
    method = Scripted((Stage("only", epochs=2, start_counts=True),))
    loop = scripted_loop(method, [])
    loop.validate = None
    assert loop.run().stopping.best_epoch == 0
    assert loop.best is None


def test_a_hook_sees_the_losses_of_its_epoch():
    seen = []

    class Watching(Scripted):
        def end_epoch(self, ctx):
            seen.append(ctx.losses)

    recorder = Recorder()
    scripted_loop(Watching(), [0.1] * 5, observers=(recorder,)).run()
    assert seen == [line["loss"] for line in recorder.records]


def test_a_fresh_optimizer_forgets_its_moments():
    def last_optimizer(fresh):
        loop = scripted_loop(Scripted((Stage("a", 2), Stage("b", 2, fresh_optimizer=fresh))), [0.1] * 4)
        loop.run()
        return next(iter(loop.optimizer.state.values()))["step"].item()

    assert last_optimizer(fresh=False) == 2 * last_optimizer(fresh=True)


def test_learning_rate_zero_leaves_gradients_equal():
    """Two equal steps give equal gradients; a missing zero_grad would double the second."""
    gradients = []

    class Spy(LightGCN):
        def loss(self, batch):
            if self.encoder.users.grad is not None:
                raise AssertionError("gradients of the last step are still there")
            return super().loss(self.same or batch)

        same = None

    method = Spy(LightGCNConfig(embedding_size=4))
    loop = lightgcn_loop(method=method, config=dataclasses.replace(CONFIG, learning_rate=1e-30, epochs=1))
    original = torch.optim.Adam.step

    def step(self, *args, **kwargs):
        gradients.append(method.encoder.users.grad.clone())
        return original(self, *args, **kwargs)

    graph = loop.graph
    from caged.graph import Sampler

    Spy.same = next(iter(Sampler(graph, 64).epoch(torch.Generator().manual_seed(0))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        loop.run()
    assert len(gradients) > 1
    assert all(torch.equal(gradient, gradients[0]) for gradient in gradients)
    assert gradients[0].abs().max() > 0


def test_the_loss_is_the_mean_over_batches():
    recorder = Recorder()
    config = dataclasses.replace(CONFIG, epochs=1, batch_size=320, learning_rate=1e-30)
    lightgcn_loop(config=config, observers=(recorder,)).run()
    whole = recorder.records[0]["loss"]["bpr"]
    recorder = Recorder()
    lightgcn_loop(config=dataclasses.replace(config, batch_size=32), observers=(recorder,)).run()
    assert recorder.records[0]["loss"]["bpr"] == pytest.approx(whole, rel=1e-5)
    assert whole == pytest.approx(math.log(2), abs=0.05)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_ends_with_a_clear_error(bad):
    class Diverging(Scripted):
        def loss(self, batch):
            losses = super().loss(batch)
            return Losses(losses.total * bad, losses.parts)

    with pytest.raises(TrainingError, match=r"became (nan|-?inf) in epoch 1.*lower the learning rate"):
        scripted_loop(Diverging(), [0.1]).run()


def test_resume_after_every_epoch_equals_an_uninterrupted_run(tmp_path):
    recorder = Recorder()
    whole = lightgcn_loop(tmp_path / "whole", observers=(recorder,))
    whole.run()
    pieces = tmp_path / "pieces"
    seen = []
    for _ in range(CONFIG.epochs):
        observer = Recorder()
        loop = lightgcn_loop(pieces, observers=(observer,), stop=lambda: True)
        with pytest.raises(Interrupted):
            loop.run()
        seen += observer.records
    last = lightgcn_loop(pieces)
    last.run()
    for mine, other in zip(last.method.state().tensors.values(), whole.method.state().tensors.values(), strict=True):
        assert torch.equal(mine, other)
    assert [r["loss"] for r in seen] == [r["loss"] for r in recorder.records]
    assert [r["validation"] for r in seen] == [r["validation"] for r in recorder.records]


def test_resume_between_stages(tmp_path):
    def run(folder, interrupt):
        values = [0.9, 0.1, 0.2, 0.3, 0.1]
        done = 0
        while True:
            method = Scripted((Stage("first", epochs=2), Stage("second", epochs=3, fresh_optimizer=True)))
            recorder = Recorder()
            loop = scripted_loop(
                method,
                values[done:],
                folder=folder,
                stored=load_checkpoint(folder),
                observers=(recorder,),
                stop_requested=lambda: interrupt,
            )
            try:
                loop.run()
            except Interrupted:
                done += len(recorder.records)
                continue
            return method.value.item(), method.updates

    assert run(tmp_path / "a", interrupt=False) == run(tmp_path / "b", interrupt=True)


def test_a_truncated_checkpoint_is_reported(tmp_path):
    loop = lightgcn_loop(tmp_path, stop=lambda: True)
    with pytest.raises(Interrupted):
        loop.run()
    (file,) = tmp_path.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(RunError, match="truncated"):
        lightgcn_loop(tmp_path).run()


def test_only_the_last_checkpoint_is_kept(tmp_path):
    lightgcn_loop(tmp_path).run()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.json", "state-5.safetensors"]


def test_no_checkpoint_before_its_time(tmp_path):
    lightgcn_loop(tmp_path, config=dataclasses.replace(CONFIG, checkpoint_seconds=3600)).run()
    assert not list(tmp_path.iterdir())
