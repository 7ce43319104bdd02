"""What validation decided in one training, so that another can do the same on more data without any validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from caged.errors import ConfigError
from caged.models.contract import Stage


class StageDecisions(NamedTuple):
    """Of one stage; epochs count from 1."""

    stage: str
    epochs: int  # behind the state that was kept; 0: what the stage started from
    improved: tuple[int, ...] = ()  # the epochs that validation called better than all before; the last was kept

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> StageDecisions:
        return cls(values["stage"], values["epochs"], tuple(values["improved"]))


@dataclass(frozen=True)
class Decisions:
    """How long each stage trains and when it counts as improved; `chosen` is what the method picked in the end, by
    name, such as MACR's c."""

    stages: tuple[StageDecisions, ...] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        stages = [{**stage._asdict(), "improved": list(stage.improved)} for stage in self.stages]
        return {"stages": stages, "chosen": dict(self.chosen)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Decisions:
        return cls(tuple(StageDecisions.from_json(stage) for stage in values["stages"]), dict(values["chosen"]))

    def check_fits(self, stages: Sequence[Stage]) -> None:
        """Refuse to replay what was decided for other stages than those of the method now."""
        recorded, wanted = [one.stage for one in self.stages], [stage.name for stage in stages]
        if recorded != wanted:
            raise ConfigError(
                f"what validation decided is of the stages {_listed(recorded)}, and this method has {_listed(wanted)}; "
                f"train it again with validation, without --init"
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
