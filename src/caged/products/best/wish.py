"""What somebody asked `caged best` for; all that its answer depends on, beside how fast the machine is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from caged.arguments import checked_seed
from caged.config import build, to_dict
from caged.errors import ConfigError
from caged.evaluation.adjust.choice import KEEP, checked_share
from caged.products.best.shortlist import BESTSELLERS, MOST_EPOCHS, ROUNDS
from caged.products.tune import Values
from caged.runs.environment import check_threads
from caged.runs.spec import DataConfig, ExperimentSpec, resolve

LONGEST = 7 * 24 * 60  # minutes
# What may differ when a search goes on: how long it may take, and where its log lies now.
FREE = ("minutes", "source")


@dataclass(frozen=True)
class Wish:
    source: str
    minutes: float = 20.0
    keep: float = KEEP  # share of the best validation recall that the chosen model must reach
    seed: int = 1
    device: str = "auto"
    threads: int | None = None
    data: DataConfig = field(default_factory=DataConfig)
    rounds: int = ROUNDS
    epochs: int = MOST_EPOCHS

    def __post_init__(self) -> None:
        if not 0 < self.minutes <= LONGEST:
            raise ConfigError(f"--minutes is {self.minutes:g}; give a number above 0 and up to {LONGEST} (a week)")
        checked_seed(self.seed)
        checked_share("--keep", self.keep)
        check_threads(self.threads)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "data": to_dict(self.data)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Wish:
        found = {known.name: values[known.name] for known in fields(cls)}
        return cls(**{**found, "data": build(DataConfig, found["data"], "data")})

    def refuse_other(self, earlier: Wish) -> None:
        """A search goes on only with what it began with."""
        mine, theirs = self.to_json(), earlier.to_json()
        for name, value in [*mine.items(), *mine["data"].items()]:
            before = {**theirs, **theirs["data"]}[name]
            if name not in ("data", *FREE) and value != before:
                option = f"--{name.replace('_', '-')}"
                raise ConfigError(
                    f"{option} is {value}, but this search began with {before}; repeat the command as it was, with "
                    "--resume, or start a new one with another --out"
                )

    def spec(
        self, method: str = BESTSELLERS, values: Values | None = None, epochs: int | None = None
    ) -> ExperimentSpec:
        """The experiment of a setting; without any of `values` at the defaults of the method."""
        tried = [f"{name}={value}" for name, value in (values or {}).items()]
        spec = resolve(self.source, method, overrides=tried, seed=self.seed, device=self.device, threads=self.threads)
        train = spec.train if epochs is None else replace(spec.train, epochs=epochs)
        return replace(spec, data=self.data, train=train)
