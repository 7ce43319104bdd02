"""What somebody passes to `fit`, `refit` and `evaluate`, as parts of one catalogue."""

from __future__ import annotations

import logging
from typing import Any

from caged.arguments import described
from caged.data import IdMap, Interactions, Split
from caged.data.matching import check_kinds, check_overlap
from caged.data.readers.files import DEFAULT_COLUMNS, read_frame_part
from caged.errors import ConfigError
from caged.training import Observer

logger = logging.getLogger("caged")


def parts_given(train: Any, valid: Any, *, name: str = "train") -> tuple[Interactions, Interactions | None]:
    """What `fit` was called with, as interactions; `name` is how it calls its first argument."""
    if isinstance(train, Split):
        if valid is not None:
            raise ConfigError("train is a Split, which has a validation part of its own; leave valid out")
        return train.train, train.valid
    return log_given(name, train), None if valid is None else log_given("valid", valid)


def log_given(name: str, log: Any) -> Interactions:
    """`Interactions`, or a frame read as such; of a part, a single user or item is fine."""
    if isinstance(log, Interactions):
        return log
    if not hasattr(log, "__arrow_c_stream__"):
        raise ConfigError(
            f"{name} is {described(log)}; give Interactions or a frame with the columns user_id and item_id, and read "
            f"files with caged.Interactions.read"
        )
    return Interactions.from_frame(log) if name in ("train", "data") else read_frame_part(log, columns=DEFAULT_COLUMNS)


def checked_observers(observers: Any) -> tuple[Observer, ...]:
    if not isinstance(observers, list | tuple):
        raise ConfigError(f"observers is {described(observers)}; give a list of objects with a method epoch(line)")
    for one in observers:
        if not callable(getattr(one, "epoch", None)):
            raise ConfigError(f"one of observers is {described(one)}; each needs a method epoch(line)")
    return tuple(observers)


def in_one_catalogue(train: Interactions, valid: Interactions) -> tuple[Interactions, Interactions]:
    """Both parts in the rows of all their users and items; what they share would be leakage and is an error."""
    check_kinds(train, {"valid": valid})
    user_ids = IdMap.union([train.user_ids, valid.user_ids])
    item_ids = IdMap.union([train.item_ids, valid.item_ids])
    train, valid = train.reindexed(user_ids, item_ids), valid.reindexed(user_ids, item_ids)
    Split(train, valid, None, kind="given")  # checks that they are disjoint
    for note in check_overlap(train, {"valid": valid}):
        logger.warning(note)
    return train, valid
