"""Whether a validation part is held out: only where something is chosen on it, unless the user says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caged.data import Interactions
from caged.data.some_users import sampled_users
from caged.errors import ConfigError

if TYPE_CHECKING:
    from caged.models import Method
    from caged.training import TrainConfig


def holds_out_validation(method: Method[Any], config: TrainConfig) -> bool:
    return config.validation == "yes" or (config.validation == "auto" and bool(method.stages()))


def sample_told(valid: Interactions | None, config: TrainConfig) -> dict[str, Any]:
    """What a record says about validation on a sample of the users; nothing where all of them validate."""
    sample = None if valid is None else sampled_users(valid, config.validation_users)
    if sample is None or valid is None:
        return {}
    return {"validation_users": {"sampled": len(sample), "of": int(np.count_nonzero(valid.user_degrees))}}


def check_refit(name: str, method: Method[Any], config: TrainConfig) -> None:
    """Refuse to train once more where validation decides nothing, or nothing that a second training could repeat."""
    if not config.refit:
        return
    if not holds_out_validation(method, config):
        raise ConfigError(
            f"train.refit trains {name} once more with what validation decided, and here it decides nothing: train and "
            "validation are both trained on anyway; leave --refit out (refit= in Python)"
        )
    reason = method.cannot_replay()
    if reason is not None:
        raise ConfigError(f"{name} cannot be refitted: {reason}; leave --refit out (refit= in Python)")


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
