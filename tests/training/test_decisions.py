"""What validation decided: as JSON and back, and only for the stages it was decided for."""

from __future__ import annotations

import json

import pytest

from caged.errors import ConfigError
from caged.models import Stage
from caged.training import Decisions, StageDecisions

DECIDED = Decisions((StageDecisions("pretrain", 3, (1, 3)), StageDecisions("finetune", 5)), {"c": 2.0})


def test_through_json_and_back() -> None:
    text = json.dumps(DECIDED.to_json())
    assert json.loads(text)["stages"][0] == {"stage": "pretrain", "epochs": 3, "improved": [1, 3]}
    assert Decisions.from_json(json.loads(text)) == DECIDED
    assert Decisions.from_json(Decisions().to_json()) == Decisions()


def test_they_fit_the_stages_they_are_of() -> None:
    DECIDED.check_fits((Stage("pretrain"), Stage("finetune", epochs=60)))
    Decisions().check_fits(())
    with pytest.raises(ConfigError, match="is of the stages pretrain, finetune, and this method has finetune"):
        DECIDED.check_fits((Stage("finetune"),))
    with pytest.raises(ConfigError, match="this method has none"):
        DECIDED.check_fits(())
