"""What a search was asked for: all that its choices depend on, and the same for every method."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from caged.arguments import checked_seed, whole_number
from caged.config import parse_override, value_text
from caged.errors import ConfigError
from caged.models import registered
from caged.products.tune.objective import USUAL, Constraint, Objective
from caged.products.tune.space import OWNED, Space, Values, declared_space, read_spaces, space_from_json, space_json
from caged.runs.spec import ExperimentSpec, resolve

MOST = 10**6
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Settings:
    source: str
    methods: tuple[str, ...]
    trials: int
    epochs: int  # of all stages of a trial together, at most
    seed: int
    seeds: int  # trainings of the chosen settings, each tested
    objective: Objective
    constraints: tuple[Constraint, ...]
    presets: tuple[str, ...]
    fixed: tuple[str, ...]  # overrides for every method that has the key; not searched
    spaces: dict[str, Space]
    device: str = "auto"
    threads: int | None = None
    prune: bool = False  # trials that are behind end early

    def to_json(self) -> dict[str, Any]:
        spaces = {method: space_json(space) for method, space in self.spaces.items()}
        return {**asdict(self), "spaces": spaces}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Settings:
        found = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        found |= {name: tuple(found[name]) for name in ("methods", "presets", "fixed")}
        found["objective"] = Objective(**found["objective"])
        found["constraints"] = tuple(Constraint(**constraint) for constraint in found["constraints"])
        found["spaces"] = {method: space_from_json(space) for method, space in found["spaces"].items()}
        return cls(**found)

    @property
    def goal_in_words(self) -> str:
        """Such as `maximise recall@20/niche subject to recall@20>=99% of lightgcn`."""
        wish = f"{'maximise' if self.objective.maximise else 'minimise'} {self.objective.key}"
        held = " and ".join(map(str, self.constraints))
        return f"{wish} subject to {held}" if held else wish

    @property
    def wished_keys(self) -> tuple[str, ...]:
        """The metrics that decide."""
        return tuple(dict.fromkeys([self.objective.key, *(each.key for each in self.constraints)]))

    @property
    def references(self) -> tuple[str, ...]:
        """Tuned before the others, which are measured by them."""
        return tuple(dict.fromkeys(each.reference for each in self.constraints if each.reference is not None))

    def wish_of(self, method: str) -> Objective:
        """What a reference is tuned for: what others are held to."""
        return next(each.wish for each in self.constraints if each.reference == method)

    def spec(self, method: str, values: Values | None = None, *, seed: int | None = None) -> ExperimentSpec:
        """The experiment of a setting, its epochs within the cap."""
        own = [text for text in self.fixed if applies(text, method)]
        tried = [f"{name}={_written(value)}" for name, value in (values or {}).items()]
        spec = resolve(
            self.source,
            method,
            presets=self.presets,
            overrides=[*own, *tried],
            seed=self.seed if seed is None else seed,
            device=self.device,
            threads=self.threads,
        )
        return _capped(spec, self.epochs)

    def defaults(self, method: str) -> Values:
        """Of what is searched, as presets and fixed values leave it."""
        spec = self.spec(method)
        return {name: setting_of(spec, name) for name in self.spaces[method]}


def setting_of(spec: ExperimentSpec, name: str) -> Any:
    section, _, key = name.partition(".")
    value = getattr(spec.config if section == "method" else spec.train, key)
    return list(value) if isinstance(value, tuple) else value


def make_settings(
    source: str,
    methods: Sequence[str],
    *,
    trials: int = 20,
    epochs: int = 200,
    seed: int = 1,
    seeds: int = 3,
    objective: Objective | None = None,
    constraints: Sequence[Constraint] = (),
    presets: Sequence[str] = (),
    fixed: Sequence[str] = (),
    space_file: Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    prune: bool = False,
) -> Settings:
    """Checked: what does not fit is found before anything is trained."""
    names = tuple(methods)
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"methods is '{','.join(names)}'; name at least one, and each once")
    given = read_spaces(space_file) if space_file is not None else {}
    for name in given:
        if name not in names:
            raise ConfigError(f"--space {space_file} has values for {name}, which is not searched; add it to --methods")
    pinned = {_fixed_name(text) for text in fixed}
    spaces = {}
    for name in names:
        registered(name)
        found = given.get(name, declared_space(name))
        spaces[name] = {option: search for option, search in found.items() if option not in pinned}
    settings = Settings(
        source=source,
        methods=names,
        trials=whole_number("--trials", trials, least=1, most=MOST),
        epochs=whole_number("--epochs", epochs, least=1, most=MOST),
        seed=checked_seed(seed),
        seeds=whole_number("--seeds", seeds, least=1, most=1000),
        objective=objective or USUAL,
        constraints=tuple(constraints),
        presets=tuple(presets),
        fixed=tuple(fixed),
        spaces=spaces,
        device=device,
        threads=threads,
        prune=prune,
    )
    _check_references(settings)
    _check_fixed(settings)
    for name in names:
        settings.spec(name)
    return settings


def _check_references(settings: Settings) -> None:
    for name in settings.references:
        if name not in settings.methods:
            raise ConfigError(f"--subject-to names {name}, which is not searched; add it to --methods")


def _check_fixed(settings: Settings) -> None:
    for text in settings.fixed:
        name = _fixed_name(text)
        if name in OWNED:
            raise ConfigError(f"--set {text} cannot be set in a search; leave it out (--epochs caps the epochs)")
        if name.startswith("method.") and not any(applies(text, method) for method in settings.methods):
            raise ConfigError(f"--set {text} fits none of {', '.join(settings.methods)}; see caged methods show NAME")


def _fixed_name(text: str) -> str:
    section, key, _ = parse_override(text)
    return f"{section}.{key}"


def applies(text: str, method: str) -> bool:
    """An option of methods is set where a method has it; the others are the same for all."""
    section, key, _ = parse_override(text)
    return section != "method" or key in {field.name for field in fields(registered(method).config)}


def _written(value: Any) -> str:
    return repr(value) if isinstance(value, float) else value_text(value)


def _capped(spec: ExperimentSpec, cap: int) -> ExperimentSpec:
    """Stages with a number of epochs of their own keep it; the others share what is left of the cap."""
    stages = registered(spec.method).method(spec.config).stages()
    own = sum(stage.epochs or 0 for stage in stages)
    shared = sum(stage.epochs is None for stage in stages)
    if not stages:
        return spec
    if own + shared > cap:
        raise ConfigError(
            f"--epochs is {cap}, but {spec.method} has stages that want {own} epochs by themselves; raise --epochs, or "
            "set fewer for them with --set"
        )
    if not shared:
        return spec
    return replace(spec, train=replace(spec.train, epochs=min(spec.train.epochs, (cap - own) // shared)))


def seconds_in(text: str) -> float:
    """
    >>> seconds_in("9m"), seconds_in("1.5h"), seconds_in("30s")
    (540.0, 5400.0, 30.0)
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or float(found[1]) == 0:
        raise ConfigError(f"--budget is '{text}'; write a time such as 30s, 9m or 1.5h")
    return float(found[1]) * _SECONDS[found[2]]
