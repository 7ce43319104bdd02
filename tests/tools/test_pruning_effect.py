from __future__ import annotations

from pathlib import Path

import pytest

from caged.products.tune.journal import Journal
from tests.products.tune.tuned import settings, write_log
from tools.pruning_effect import effects, main


def searched(folder: Path, curves: list[list[float]]) -> Path:
    """A finished search of one method whose trials went like that; the cap is 16 epochs, the rungs 2, 4 and 8."""
    asked = settings(write_log(folder), "lightgcn", trials=len(curves), epochs=16)
    journal = Journal(folder / "journal.jsonl")
    journal.write("begin", settings=asked.to_json(), data={})
    for number, values in enumerate(curves):
        epochs = list(range(1, len(values) + 1))
        told = {"monitor": "recall@20", "total": len(values), "epochs": epochs, "values": {"recall@20": values}}
        journal.write("start", method="lightgcn", trial=number, values={"method.layers": number})
        journal.write(
            "end",
            method="lightgcn",
            trial=number,
            status="complete",
            metrics={"recall@20": max(values)},
            epochs=len(values),
            best_epoch=1,
            seconds=1.0,
            curve=told,
        )
    return folder


def test_a_late_winner_would_have_been_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat = [[0.5] * 16] * 5
    late = [*[0.1] * 4, *[0.9] * 12]
    early = [0.6] * 6  # it ended by itself
    searched(tmp_path, [*flat, late, early])
    [effect] = effects(tmp_path, None)
    assert (effect.trials, effect.pruned, effect.epochs, effect.saved) == (7, 1, 102, 14)
    assert (effect.best.number, effect.lost, effect.value, effect.value_left) == (5, True, 0.9, 0.6)
    main([str(tmp_path), "--maximise", "recall@20"])
    assert "1 of 1 best trials would have been pruned; 14 of 102 epochs saved (14%)." in capsys.readouterr().out


def test_the_first_trials_are_never_pruned(tmp_path: Path) -> None:
    searched(tmp_path, [[0.5] * 16, *[[0.1] * 16] * 4])
    [effect] = effects(tmp_path, None)
    assert (effect.pruned, effect.saved, effect.lost) == (0, 0, False)
