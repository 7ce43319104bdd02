"""`caged.split`: every kind of split by name, as the command line has them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from caged.arguments import checked_seed, choice, described, finite_number
from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.matching import check_kinds, check_overlap
from caged.data.parts import PARTS
from caged.data.readers.files import DEFAULT_COLUMNS, read_frame, read_frame_part, read_part
from caged.data.source import load
from caged.data.splits.kinds import Split, given_split, split_log
from caged.data.splits.marked import validate_on as only_marked
from caged.errors import ConfigError, DataError, unknown

GIVEN = "given"
KindName = Literal["random", "time", "leave_last_out", "intervened", "given"]

logger = logging.getLogger("caged")


def split(
    data: Any,
    kind: KindName = "random",
    *,
    seed: int = 1,
    test_share: float | None = None,
    valid_share: float | None = None,
    max_item_share: float | None = None,
    validate_on: str | None = None,
) -> Split:
    """Split a log into train, validation and test.

    `data` is `Interactions`, or a frame with the columns user_id and item_id. The kinds are those of
    `caged data split`:

    - `random`: 7:1:2 of each user's interactions, drawn with `seed`;
    - `time`: two cuts in time, the same for everybody (`test_share` 0.2, `valid_share` 0.1);
    - `leave_last_out`: each user's last interaction is test, the one before validation;
    - `intervened`: a popularity-balanced test part (`test_share`, `valid_share`, `max_item_share` 0.5, `seed`);
    - `given`: parts that exist already. `data` is then the name of a dataset, a folder with train and test files, or
      a dict `{"train": ..., "test": ...}` of `Interactions`, frames or files. Without a "valid" part, an eighth of
      each user's training interactions is carved out for it.

    `validate_on="source=explore"` keeps only marked interactions in the validation part; the others go back to train.
    The column must have been read: `Interactions.read(path, keep=["source"])`.
    """
    chosen = choice("kind", kind, get_args(KindName))
    shares = {"test_share": test_share, "valid_share": valid_share, "max_item_share": max_item_share}
    options = {name: finite_number(name, value) for name, value in shares.items() if value is not None}
    if chosen == GIVEN:
        if options:
            raise DataError(f"parts that are given keep their sizes; leave {next(iter(options))} out")
        parts = given_split(_parts_given(data), seed=checked_seed(seed), protocol="honest")
    else:
        parts = split_log(_log_given(data), chosen, seed=seed, **options)
    if validate_on is None:
        return parts
    if not isinstance(validate_on, str):
        raise ConfigError(f"validate_on is {described(validate_on)}; write it as COLUMN=VALUE, e.g. 'source=explore'")
    return only_marked(parts, validate_on)


def _log_given(data: Any) -> Interactions:
    if isinstance(data, Interactions):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return read_frame(data)
    raise ConfigError(
        f"data is {described(data)}; give Interactions or a frame, read a file with caged.Interactions.read, and use "
        'kind="given" for parts that exist already'
    )


def _parts_given(data: Any) -> dict[str, Interactions]:
    """The parts by name, in the rows of one catalogue."""
    if isinstance(data, str | Path):
        source = load(data)
        _say(source.notes)
        if source.parts is None:
            raise DataError(
                f"'{data}' is one log, not a split; read it with caged.Interactions.read, and choose a kind"
            )
        return dict(source.parts)
    if not isinstance(data, Mapping):
        raise ConfigError(
            f'data is {described(data)}; with kind="given" give a folder, the name of a dataset, or a dict of parts '
            '{"train": ..., "test": ...}'
        )
    for name in data:
        if name not in PARTS:
            raise ConfigError(unknown("part", str(name), PARTS))
    parts = {name: _part_given(name, part) for name, part in data.items() if part is not None}
    if "train" not in parts:
        raise DataError(f"the given split has no train part, found: {', '.join(parts) or 'nothing'}; add it")
    check_kinds(parts["train"], parts)
    user_ids = IdMap.union(part.user_ids for part in parts.values())
    item_ids = IdMap.union(part.item_ids for part in parts.values())
    parts = {name: part.reindexed(user_ids, item_ids) for name, part in parts.items()}
    _say(check_overlap(parts["train"], parts))
    return parts


def _part_given(name: str, part: Any) -> Interactions:
    if isinstance(part, Interactions):
        return part
    if isinstance(part, str | Path):
        return read_part(Path(part), columns=DEFAULT_COLUMNS)
    if hasattr(part, "__arrow_c_stream__"):
        return read_frame_part(part, columns=DEFAULT_COLUMNS, where=f"the frame of {name}")
    raise ConfigError(f"part '{name}' is {described(part)}; give Interactions, a frame or a file")


def _say(notes: tuple[str, ...]) -> None:
    for note in notes:
        logger.warning(note)
