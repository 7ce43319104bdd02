"""`ExperimentSpec`: one resolved experiment, everything that its outcome depends on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from caged.arguments import checked_seed
from caged.config import build, option, parse_override, to_dict, unknown_key
from caged.data import KINDS, Columns
from caged.data.popularity import POPULAR_SHARE, popular_share
from caged.data.shown import HALVES
from caged.data.splits import parse_mark
from caged.errors import ConfigError, unknown
from caged.models import METHODS, registered
from caged.runs.presets import TUNED, preset_values
from caged.runs.protocols import Protocol, check_split_options, check_validation, protocol_named
from caged.runs.validation import check_refit, check_without_validation

if TYPE_CHECKING:
    from caged.training import TrainConfig

log = logging.getLogger(__name__)

SECTIONS = ("data", "method", "train", "eval")
PRESET_SECTIONS = ("train", "backbone", "methods", TUNED)
OWN_TRAINING = "train"  # in a preset, the part of [methods.<method>] that is about training


@dataclass(frozen=True)
class DataConfig:
    user_column: str | None = option(None, "name of the user column; none: user_id")
    item_column: str | None = option(None, "name of the item column; none: item_id")
    rating_column: str | None = option(None, "name of the rating column; none: rating, if there is one")
    timestamp_column: str | None = option(None, "name of the time column; none: timestamp, if there is one")
    ids: str = option(
        "auto", "auto: integers if every id is an integer; text: every id is a name", choices=("auto", "text")
    )
    min_rating: float | None = option(None, "keep only interactions with at least this rating")
    k_core: int | None = option(
        None,
        "for a log, keep only users and items with at least this many interactions, once all others are gone",
        minimum=1,
    )
    catalogue: str = option(
        "all",
        "all: the users and items of every part; train: only those of train and validation, and of the item table",
        choices=("all", "train"),
    )
    split: str = option("random", "how a log is split; a folder with parts is already split", choices=tuple(KINDS))
    split_seed: int = option(1, "seed of the split (training has its own seed)", minimum=0)
    validate_on: str | None = option(
        None, "take validation only from interactions with this COLUMN=VALUE, such as randomised traffic"
    )

    def columns(self) -> Columns:
        kept = () if self.validate_on is None else (parse_mark(self.validate_on)[0],)
        return (
            Columns(keep=kept)
            .reading_ids(self.ids)
            .named(
                user=self.user_column,
                item=self.item_column,
                rating=self.rating_column,
                timestamp=self.timestamp_column,
            )
        )


@dataclass(frozen=True)
class EvalConfig:
    k: tuple[int, ...] = option(
        (20,), "list lengths of the metrics; the first one decides the epoch", source="CAGED paper", minimum=1
    )
    list_length: int = option(100, "length of the stored lists", source="ndcg_hits100 needs 100", minimum=1)
    popular_share: float = option(
        float(POPULAR_SHARE), "share of the trained items that counts as popular; the others are niche"
    )
    shown_k: tuple[int, ...] = option((5,), "cut-offs of shown_ndcg and shown_precision", minimum=1)
    shown_half: str = option(
        "all",
        "users to judge by items shown at random: all, or the first or second half (by a hash of their ids), "
        "so that what is chosen on one half can be reported on the other",
        choices=HALVES,
    )

    def __post_init__(self) -> None:
        popular_share(self.popular_share, "eval.popular_share")
        if len(set(self.k)) < len(self.k):
            raise ConfigError(f"eval.k is {', '.join(map(str, self.k))}; name each list length once")
        if len(set(self.shown_k)) < len(self.shown_k):
            raise ConfigError(f"eval.shown_k is {', '.join(map(str, self.shown_k))}; name each cut-off once")

    @property
    def monitor(self) -> str:
        return f"recall@{self.k[0]}"


@dataclass(frozen=True)
class ExperimentSpec:
    source: str  # as the user wrote it: a dataset name, a file or a folder
    method: str
    protocol: str
    seed: int
    device: str  # auto | cpu | cuda
    data: DataConfig
    config: Any  # the method's configuration
    train: TrainConfig
    eval: EvalConfig
    presets: tuple[str, ...] = ()
    threads: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "method": self.method,
            "protocol": self.protocol,
            "seed": self.seed,
            "device": self.device,
            "threads": self.threads,
            "presets": list(self.presets),
            "config": {
                "data": to_dict(self.data),
                "method": to_dict(self.config),
                "train": to_dict(self.train),
                "eval": to_dict(self.eval),
            },
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ExperimentSpec:
        config = values["config"]
        return cls(
            source=values["source"],
            method=values["method"],
            protocol=values["protocol"],
            seed=values["seed"],
            device=values["device"],
            data=build(DataConfig, config["data"], "data"),
            config=build(registered(values["method"]).config, config["method"], "method"),
            train=build(_train_config(), config["train"], "train"),
            eval=build(EvalConfig, config["eval"], "eval"),
            presets=tuple(values["presets"]),
            threads=values["threads"],
        )


def resolve(
    source: str,
    method: str,
    *,
    protocol: str = "honest",
    presets: Sequence[str] = (),
    overrides: Sequence[str] = (),
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
    data: Mapping[str, Any] | None = None,
) -> ExperimentSpec:
    """Defaults, then presets in order, then what the protocol owns, then explicit overrides."""
    chosen_method = registered(method)
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for name in presets:
        preset = read_preset(name, method)
        if not any(preset.values()):
            log.warning("preset '%s' sets nothing for %s: it changes nothing here", name, method)
        for section, chosen in preset.items():
            values[section].update(chosen)
    _apply_protocol(values, protocol_named(protocol), chosen_method.config)
    values["data"].update({key: value for key, value in (data or {}).items() if value is not None})
    for text in overrides:
        section, key, value = parse_override(text)
        if section not in SECTIONS:
            raise ConfigError(unknown("section", section, SECTIONS) + f" (in --set {text})")
        values[section][key] = value
    chosen_data = build(DataConfig, values["data"], "data")
    check_split_options(protocol_named(protocol), chosen_data.split, chosen_data.validate_on, chosen_data.catalogue)
    chosen_train = build(_train_config(), values["train"], "train")
    check_validation(
        protocol_named(protocol), chosen_data.validate_on, chosen_train.validation, refit=chosen_train.refit
    )
    config = build(chosen_method.config, values["method"], "method")
    made = chosen_method.method(config)
    check_without_validation(method, made, chosen_train, epochs_given="epochs" in values["train"])
    check_refit(method, made, chosen_train)
    return ExperimentSpec(
        source=source,
        method=method,
        protocol=protocol,
        seed=checked_seed(seed),
        device=device,
        data=chosen_data,
        config=config,
        train=chosen_train,
        eval=build(EvalConfig, values["eval"], "eval"),
        presets=tuple(presets),
        threads=threads,
    )


def deviations(spec: ExperimentSpec) -> list[str]:
    """Values that the protocol owns and that were set otherwise: said aloud, since they change what is compared."""
    protocol = protocol_named(spec.protocol)
    owned = [("method", spec.config, protocol.method), ("train", spec.train, protocol.train)]
    return [
        f"{section}.{key}={getattr(config, key)} instead of {value}"
        for section, config, mapping in owned
        for key, value in mapping.items()
        if hasattr(config, key) and getattr(config, key) != value
    ]


def read_preset(name: str, method: str) -> dict[str, dict[str, Any]]:
    """What a preset sets for `method`: `[train]`, `[backbone]` where the method has such keys, `[methods.<method>]`,
    and `[methods.<method>.train]` for training with this method alone.

    `name` is one of the built-in presets or a path to a TOML file of the same form.
    """
    values = preset_values(name)
    _check_preset(name, values)
    known = _keys_of(method)
    backbone = {key: value for key, value in values.get("backbone", {}).items() if key in known}
    own = values.get("methods", {}).get(method, {})
    options = {key: value for key, value in own.items() if key != OWN_TRAINING}
    return {
        "train": {**values.get("train", {}), **own.get(OWN_TRAINING, {})},
        "method": {**backbone, **options},
    }


def _check_preset(name: str, values: Mapping[str, Any]) -> None:
    """Refuse whatever no method would read, also the parts that are for other methods."""
    for section, content in values.items():
        if section not in PRESET_SECTIONS:
            raise ConfigError(unknown(f"section in preset '{name}'", section, PRESET_SECTIONS))
        if not isinstance(content, dict):
            raise ConfigError(f"'{section}' in preset '{name}' is {content!r}; it must be a table, write [{section}]")
    _check_origin(name, values.get(TUNED))
    of_training = {field.name for field in fields(_train_config())}
    _check_keys("train", values.get("train", {}), of_training)
    _check_keys("backbone", values.get("backbone", {}), {key for known in METHODS for key in _keys_of(known)})
    for method, own in values.get("methods", {}).items():
        if method not in METHODS:
            raise ConfigError(unknown(f"method in preset '{name}'", method, METHODS))
        if not isinstance(own, dict):
            raise ConfigError(f"'{method}' in preset '{name}' is {own!r}; write it as a table [methods.{method}]")
        training = own.get(OWN_TRAINING, {})
        if not isinstance(training, dict):
            raise ConfigError(
                f"'{OWN_TRAINING}' of {method} in preset '{name}' is {training!r}; write it as a table "
                f"[methods.{method}.{OWN_TRAINING}]"
            )
        _check_keys(f"methods.{method}.{OWN_TRAINING}", training, of_training)
        _check_keys(f"methods.{method}", own, {*_keys_of(method), OWN_TRAINING})


def _check_origin(name: str, origin: Mapping[str, Any] | None) -> None:
    if origin is None:
        return
    _check_keys(TUNED, origin, {"data", "methods"})
    data, methods = origin.get("data"), origin.get("methods")
    if not isinstance(data, str) or not isinstance(methods, list) or not all(isinstance(one, str) for one in methods):
        raise ConfigError(
            f"[{TUNED}] in preset '{name}' has data = {data!r} and methods = {methods!r}; name the data and "
            "a list of the methods that caged tune chose values for, or leave the section out"
        )
    for method in methods:
        if method not in METHODS:
            raise ConfigError(unknown(f"method in [{TUNED}] of preset '{name}'", method, METHODS))


def _check_keys(section: str, values: Mapping[str, Any], known: set[str]) -> None:
    for key in values:
        if key not in known:
            raise ConfigError(unknown_key(f"{section}.{key}", [f"{section}.{name}" for name in sorted(known)]))


def _train_config() -> type[TrainConfig]:
    """Imported when an experiment is specified: whoever reads the folder of a run does not wait for torch."""
    from caged.training import TrainConfig

    return TrainConfig


def _keys_of(method: str) -> set[str]:
    return {field.name for field in fields(registered(method).config)}


def _apply_protocol(values: dict[str, dict[str, Any]], protocol: Protocol, config: type[Any]) -> None:
    known = {field.name for field in fields(config)}
    values["method"].update({key: value for key, value in protocol.method.items() if key in known})
    values["train"].update(protocol.train)
