"""How a protocol splits a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.data import (
    KINDS,
    split,
    split_log,
    validate_on,
)
from caged.data.source import Source
from caged.errors import ConfigError, DataError
from caged.runs.protocols import HONEST, PAPER, Protocol, check_split_options, split_source
from tests.data.splits.logs import marked_log


def test_honest_splits_a_log_as_asked() -> None:
    data = marked_log()
    source = Source("log", Path("log.csv"), log=data)
    for kind in KINDS:
        made = split_source(source, HONEST, 2, kind=kind)
        assert made.fingerprint == split_log(data, kind, seed=2).fingerprint
        chosen = split_source(source, HONEST, 2, kind=kind, mark="source=explore")
        assert chosen.fingerprint == validate_on(made, "source=explore").fingerprint
    assert split_source(source, HONEST, 2).fingerprint == split(data, seed=2).fingerprint


def test_a_split_that_is_there_is_not_split_again() -> None:
    data = marked_log()
    parts = {"train": data.select(data.items % 7 != 0), "test": data.select(data.items % 7 == 0)}
    source = Source("folder", Path("folder"), parts=parts)
    with pytest.raises(DataError, match=r"data.split is 'time', but 'folder' is split into train, test already"):
        split_source(source, HONEST, 1, kind="time")
    with pytest.raises(ConfigError, match=r"data.split is 'time', but protocol 'paper' fixes the split"):
        check_split_options(PAPER, "time", None)
    with pytest.raises(ConfigError, match=r"data.validate_on is 'source=explore', but protocol 'paper'"):
        check_split_options(PAPER, "random", "source=explore")


def test_what_reads_100_places_is_reported_for_paper_lists_of_100_only() -> None:
    def published(protocol: Protocol, list_length: int) -> list[str]:
        return [key for key in protocol.metrics((20,), list_length) if key.metric.published]

    assert published(PAPER, 100) == ["ndcg_hits100@20", "ndcg_hits100@20/popular", "ndcg_hits100@20/niche"]
    assert published(PAPER, 99) == published(HONEST, 100) == []
