"""Whether a validation part is held out: only where something is chosen on it, unless the user says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caged.errors import ConfigError

if TYPE_CHECKING:
    from caged.models import Method
    from caged.training import TrainConfig


def holds_out_validation(method: Method[Any], config: TrainConfig) -> bool:
    return config.validation == "yes" or (config.validation == "auto" and bool(method.stages()))


def check_without_validation(name: str, method: Method[Any], config: TrainConfig, *, epochs_given: bool) -> None:
    """Refuse training without validation where it would never end well: no number of epochs, or a method in need."""
    if holds_out_validation(method, config) or not method.stages():
        return
    reason = method.needs_validation()
    if reason is not None:
        raise ConfigError(f"{name} cannot be trained without a validation part: {reason}; leave train.validation out")
    if not epochs_given:
        raise ConfigError(
            f"train.validation is 'no', so nothing ends the training of {name} before its {config.epochs} epochs; say "
            "how many there shall be: --set train.epochs=N, in Python epochs=N"
        )
