"""The decisions of one training, replayed in another: without validation, and after a resume."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from caged.errors import ConfigError
from caged.evaluation.evaluate import make_validator
from caged.graph import BipartiteGraph
from caged.models import METHODS, Stage, registered
from caged.seeding import Generators
from caged.training import Decisions, Interrupted, Loop, StageDecisions, load_checkpoint
from tests.models.logs import skewed
from tests.training.test_loop import CONFIG, Recorder, Scripted, scripted_loop

OPTIONS: dict[str, dict[str, Any]] = {
    "macr": {"c_candidates": (0.0, 1.0, 5.0)},
    "advdrop": {"interval": 2, "adv_steps": 2},
    "galore": {"pretrain_epochs": 1, "finetune_epochs": 3},  # epochs after the best draw numbers that a replay does not
    "caged": {"eps": 0.1},
}


def replay_of(loop: Loop, method: Any, **options: Any) -> Loop:
    return Loop(method, loop.graph, loop.config, Generators(1), None, replay=loop.decisions, **options)


def test_what_is_recorded() -> None:
    loop = scripted_loop(Scripted((Stage("one"), Stage("two", epochs=3))), [0.1, 0.3, 0.2, 0.4, 0.1, 0.9, 0.8, 0.7])
    loop.run()
    assert loop.decisions == Decisions((StageDecisions("one", 4, (1, 2, 4)), StageDecisions("two", 1, (1,))))


def test_without_validation_every_epoch_is_kept() -> None:
    loop = Loop(Scripted(), BipartiteGraph.from_interactions(skewed()), CONFIG, Generators(1), None)
    loop.run()
    assert loop.decisions == Decisions((StageDecisions("train", 5),))


def test_a_replay_stops_and_improves_as_recorded() -> None:
    recorded = scripted_loop(Scripted(), [0.1, 0.3, 0.2, 0.4, 0.1])
    recorded.run()
    method, watch = Scripted(), Recorder()
    replayed = replay_of(recorded, method, observers=(watch,))
    replayed.run()
    assert replayed.decisions == recorded.decisions
    assert "score" not in method.diary  # nothing was validated
    assert [line["improved"] for line in watch.records] == [True, True, False, True]
    assert [(line["validation"], line["best"], line["epochs"]) for line in watch.records] == [(None, None, 4)] * 4
    assert torch.equal(method.value, recorded.method.value)
    assert method.updates == recorded.method.updates == 2  # as it was before the last `end_epoch`


@pytest.mark.parametrize(("every", "validated"), [(1, [1, 2, 3, 4]), (2, [2, 4]), (3, [3, 4])])
def test_hooks_know_which_epochs_were_validated(every: int, validated: list[int]) -> None:
    class Asking(Scripted):
        def end_epoch(self, ctx: Any) -> None:
            if ctx.validated:
                self.diary.append(ctx.epoch)

    config = dataclasses.replace(CONFIG, epochs=4, validate_every=every)
    recorded = scripted_loop(Asking(), [0.1, 0.2, 0.3, 0.4], config)
    recorded.run()
    method = Asking()
    replay_of(recorded, method).run()
    kept = recorded.decisions.stages[0].epochs
    assert [epoch for epoch in method.diary if isinstance(epoch, int)] == [one for one in validated if one <= kept]


def test_a_replay_that_is_interrupted_after_every_epoch(tmp_path: Any) -> None:
    recorded = scripted_loop(Scripted((Stage("one"), Stage("two"))), [0.1, 0.3, 0.2, 0.4, 0.1, 0.5, 0.6, 0.2, 0.1, 0.1])
    recorded.run()
    undisturbed = Scripted((Stage("one"), Stage("two")))
    replay_of(recorded, undisturbed).run()
    for _ in range(20):
        method = Scripted((Stage("one"), Stage("two")))
        stored = load_checkpoint(tmp_path)
        assert stored is None or stored.replays
        loop = replay_of(recorded, method, folder=tmp_path, stored=stored, stop_requested=lambda: True)
        try:
            loop.run()
        except Interrupted:
            continue
        break
    assert torch.equal(method.value, undisturbed.value)
    assert loop.decisions == recorded.decisions


@pytest.mark.parametrize("name", METHODS)
def test_every_method_replays_to_the_same_model_on_the_same_data(name: str) -> None:
    """Same data, same seed, no validation: the same decisions lead to the same bits."""
    log = skewed()
    known = registered(name)
    options = {"embedding_size": 4} if hasattr(known.config(), "embedding_size") else {}
    config = known.config(**options, **OPTIONS.get(name, {}))
    chosen = torch.rand(len(log), generator=torch.Generator().manual_seed(3)).numpy() < 0.8
    train = log.select(chosen)
    graph = BipartiteGraph.from_interactions(train)
    validate = make_validator(train, log.select(~chosen), k=5, metrics=("recall@5",))
    train_config = dataclasses.replace(CONFIG, epochs=6)
    recorded = Loop(known.method(config), graph, train_config, Generators(1), validate, monitor="recall@5")
    recorded.run()
    assert known.method(config).cannot_replay() is None
    replayed = Loop(known.method(config), graph, train_config, Generators(1), None, replay=recorded.decisions)
    replayed.run()
    assert replayed.decisions == recorded.decisions
    one, other = recorded.method.serving_state(), replayed.method.serving_state()
    for tensor in one.tensors:
        assert torch.equal(one.tensors[tensor], other.tensors[tensor]), tensor
    assert {**one.scalars, "scanned": []} == {**other.scalars, "scanned": []}
    if name == "macr":
        assert recorded.decisions.chosen == {"c": recorded.method.c}
    else:
        assert recorded.decisions.chosen == {}
    if name == "galore":
        assert [stage.stage for stage in recorded.decisions.stages] == ["pretrain", "finetune"]


@pytest.mark.parametrize("without", ["update_condition", "two_stage"])
def test_variants_of_caged_replay_their_updates(without: str) -> None:
    log, known = skewed(), registered("caged")
    config = known.config(embedding_size=4, eps=0.1, without=without, estimator_pretrain_epochs=2)
    graph = BipartiteGraph.from_interactions(log)
    first = [0.1, 0.2, 0.3, 0.4, 0.5] if without == "two_stage" else []  # see OPTIONS
    script = iter([*first, 0.3, 0.2, 0.4, 0.1, 0.2])
    recorded = Loop(known.method(config), graph, CONFIG, Generators(1), lambda _: {"recall@20": next(script)})
    recorded.run()
    replayed = Loop(known.method(config), graph, CONFIG, Generators(1), None, replay=recorded.decisions)
    replayed.run()
    assert replayed.method.updates == recorded.method.updates > 0
    assert torch.equal(replayed.method.weights.to_user, recorded.method.weights.to_user)


def test_decisions_of_other_stages_are_refused() -> None:
    loop = scripted_loop(Scripted(), [0.1] * 5)
    loop.run()
    with pytest.raises(ConfigError, match="of the stages train, and this method has one, two"):
        replay_of(loop, Scripted((Stage("one"), Stage("two")))).run()
