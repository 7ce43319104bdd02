"""What each option did."""

from __future__ import annotations

import numpy as np
import pytest

from caged.config import Range
from caged.products.tune.choice import Choice, Chosen
from caged.products.tune.importance import LEAST_TRIALS, effects, explained, too_few
from caged.products.tune.journal import Trial
from caged.products.tune.objective import Goal, Objective
from tests.products.tune.answered import Answered


def test_an_option_that_decides_explains_everything_and_noise_nothing() -> None:
    generator = np.random.default_rng(3)
    labels = [str(place % 3) for place in range(30)]
    decided, p = explained(labels, np.array([float(label) for label in labels]))
    assert decided == pytest.approx(1.0)
    assert p < 0.001
    shares, chances = zip(*(explained(labels, generator.random(30)) for _ in range(100)), strict=True)
    assert np.mean(shares) < 0.05  # not biased upwards, as the plain share is: (3 - 1) / 29 on average
    assert 0.35 < np.mean(chances) < 0.65


def test_groups_of_one_say_nothing() -> None:
    assert np.isnan(explained(["a", "b", "c"], np.array([1.0, 2.0, 3.0]))).all()
    assert np.isnan(explained(["a", "a", "b"], np.array([1.0, 1.0, 1.0]))).all()
    assert np.isnan(explained(["a", "a", "a"], np.array([1.0, 2.0, 3.0]))).all()


def test_the_option_that_counts_is_found() -> None:
    """Recall rises with the learning rate, a range, and knows nothing of the others."""
    rates = [10 ** (-place / 4) for place in range(16)]
    trials = tuple(
        Trial(
            method="ips",
            number=number,
            values={"train.learning_rate": rate, "method.eta": (0.5, 1.0)[number % 2], "method.layers": 3},
            status="complete",
            metrics={"recall@20": 1 - number / 16},
        )
        for number, rate in enumerate(rates)
    )
    chosen = Chosen("ips", trials[0], trials[0], feasible=True, counted=trials, exhausted=False)
    choice = Choice(Goal(Objective("recall@20")), rounds=16, dropped=0, methods=(chosen,), front=())
    space = {"train.learning_rate": Range(1e-4, 1.0, "log"), "method.eta": (0.5, 1.0), "method.layers": (3,)}
    strongest, other = effects(choice, {"ips": space})
    assert (strongest.option, other.option) == ("train.learning_rate", "method.eta")
    assert strongest.share > 0.5 > other.share
    assert strongest.p < strongest.p_adjusted < 0.05 < other.p
    assert [step.trials for step in strongest.steps] == [5, 5, 6]
    assert strongest.steps[0].label == "0.1 to 1"
    assert too_few(choice) == []


def test_few_trials_are_left_out(answered: Answered) -> None:
    answer = answered(trials=LEAST_TRIALS - 1)
    assert effects(answer.choice, answer.settings.spaces) == []
    assert too_few(answer.choice) == ["lightgcn", "ips"]
