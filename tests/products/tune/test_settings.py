"""What a search was asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caged.errors import ConfigError
from caged.files import json_ready
from caged.products.tune.objective import Constraint, Objective
from caged.products.tune.settings import Settings, make_settings, seconds_in


def test_settings_survive_the_journal() -> None:
    made = make_settings(
        "log.csv",
        ["lightgcn", "mostpop"],
        objective=Objective("recall@20/niche"),
        constraints=[Constraint.parse("recall@20>=99% of lightgcn")],
        presets=["epinions"],
        fixed=["method.layers=2"],
    )
    assert Settings.from_json(json.loads(json.dumps(json_ready(made.to_json())))) == made
    assert made.references == ("lightgcn",)
    assert made.wish_of("lightgcn") == Objective("recall@20")


def test_a_goal_in_words() -> None:
    assert make_settings("x", ["ease"]).goal_in_words == "maximise recall@20"
    wanted = [Constraint.parse("recall@20 >= 99% of ease"), Constraint.parse("arp@20<=300")]
    made = make_settings("x", ["ease"], objective=Objective("gini@20", maximise=False), constraints=wanted)
    assert made.goal_in_words == "minimise gini@20 subject to recall@20>=99% of ease and arp@20<=300"


def test_defaults_have_presets_as_their_base_and_fixed_values_are_not_searched() -> None:
    made = make_settings("x", ["lightgcn", "mostpop"], presets=["epinions"], fixed=["train.learning_rate=0.5"])
    assert made.defaults("lightgcn") == {"method.l2": 2e-4}
    assert made.spec("lightgcn").train.learning_rate == 0.5
    assert made.spec("lightgcn").config.embedding_size == 256
    assert made.defaults("mostpop") == {}


def test_a_value_is_written_down_to_the_last_digit() -> None:
    value = 0.12345678901234567
    made = make_settings("x", ["lightgcn"])
    assert made.spec("lightgcn", {"train.learning_rate": value}).train.learning_rate == value


def test_the_cap_on_epochs_holds_for_all_stages_together() -> None:
    made = make_settings("x", ["lightgcn", "galore", "ease"], epochs=100)
    assert made.spec("lightgcn").train.epochs == 100
    assert made.spec("galore").train.epochs == 40  # its second stage has 60 of its own
    two = make_settings("x", ["caged"], epochs=101, fixed=["method.without=two_stage"])
    assert two.spec("caged").train.epochs == 50
    with pytest.raises(ConfigError, match="stages that want 60 epochs"):
        make_settings("x", ["galore"], epochs=60)


def test_fewer_epochs_than_the_cap_stay_fewer(tmp_path: Path) -> None:
    preset = tmp_path / "short.toml"
    preset.write_text("[train]\nepochs = 7\n", encoding="utf-8")
    assert make_settings("x", ["lightgcn"], presets=[str(preset)]).spec("lightgcn").train.epochs == 7


@pytest.mark.parametrize(
    ("methods", "options", "words"),
    [
        (["lightgnc"], {}, "did you mean 'lightgcn'"),
        (["ease", "ease"], {}, "each once"),
        ([], {}, "at least one"),
        (["ease"], {"trials": 0}, "--trials"),
        (["ease"], {"constraints": [Constraint.parse("recall@20>=9% of lightgcn")]}, "add it to --methods"),
        (["ease"], {"fixed": ["train.epochs=3"]}, "--epochs caps"),
        (["ease"], {"fixed": ["method.layers=3"]}, "fits none of ease"),
        (["ease"], {"fixed": ["train.layers=3"]}, "unknown key 'train.layers'"),
    ],
)
def test_what_does_not_fit_is_refused(methods: list[str], options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_settings("x", methods, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["9", "0m", "m", "9 days", "-1m"])
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="--budget is"):
        seconds_in(text)
