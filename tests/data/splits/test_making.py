"""`caged.split`: the kinds of the command line by name."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

import caged
from caged.data import KINDS, Columns, read_log, split_log
from caged.data.splits.making import GIVEN, KindName
from caged.errors import ConfigError, DataError
from tests.cli.invoke import caged as command
from tests.data.splits.logs import marked_log, random_log


def test_the_kinds_are_those_of_the_command_line() -> None:
    assert set(get_args(KindName)) == {*KINDS, GIVEN}
    options = {name for kind in KINDS.values() for name in kind.options}
    assert options <= set(inspect.signature(caged.split).parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_by_its_name(kind: Any) -> None:
    data = random_log()
    assert caged.split(data, kind, seed=3).fingerprint == split_log(data, kind, seed=3).fingerprint


def test_options_of_a_kind() -> None:
    data = random_log()
    chosen = caged.split(data, "intervened", seed=2, test_share=0.3, valid_share=0.2, max_item_share=0.4)
    assert chosen.parameters == {"seed": 2, "test_share": 0.3, "valid_share": 0.2, "max_item_share": 0.4}
    with pytest.raises(DataError, match="split 'random' has no test_share to set"):
        caged.split(data, test_share=0.3)
    with pytest.raises(ConfigError, match=r"unknown kind 'tim'.*'time'"):
        caged.split(data, "tim")  # type: ignore[arg-type]


def test_a_frame_is_split_like_its_interactions() -> None:
    frame = random_log().to_arrow().to_pandas()
    assert caged.split(frame, "time").fingerprint == caged.split(random_log(), "time").fingerprint


def test_validation_on_marked_interactions() -> None:
    parts = caged.split(marked_log(), validate_on="source=explore")
    assert parts.valid is not None
    assert set(parts.valid.columns["source"]) == {"explore"}
    assert parts.parameters["validate_on"] == "source=explore"


def test_the_same_split_as_the_command_line(log_csv: Path, tmp_path: Path) -> None:
    assert command("data", "split", log_csv, "-o", tmp_path / "parts", "--kind", "intervened", "--seed", "4").code == 0
    written = caged.split(tmp_path / "parts", "given")
    assert written.fingerprint == caged.split(caged.Interactions.read(log_csv), "intervened", seed=4).fingerprint
    assert written.parameters == {"validation": "given"}


def test_given_parts_in_every_form(tmp_path: Path) -> None:
    parts = caged.split(random_log())
    frames = {name: part.to_arrow().to_pandas() for name, part in parts.parts.items()}
    frames["test"].to_parquet(tmp_path / "later.parquet")
    assert parts.valid is not None
    mixed = {"train": frames["train"], "valid": parts.valid, "test": tmp_path / "later.parquet"}
    assert caged.split(mixed, "given").fingerprint == parts.fingerprint


def test_validation_is_carved_from_given_parts() -> None:
    parts = caged.split(random_log())
    assert parts.test is not None
    two = caged.split({"train": parts.train, "test": parts.test}, "given", seed=5)
    assert two.valid is not None
    assert len(two.train) + len(two.valid) == len(parts.train)
    assert two.parameters == {"validation": "carved from train", "seed": 5}


def test_given_parts_share_one_catalogue(caplog: pytest.LogCaptureFixture) -> None:
    train = pd.DataFrame({"user_id": ["a"] * 8 + ["b"], "item_id": [*"stuvwxyz", "s"]})
    test = pd.DataFrame({"user_id": ["b", "b", "b"], "item_id": ["t", "new", "newer"]})
    with caplog.at_level(logging.WARNING, logger="caged"):
        parts = caged.split({"train": train, "test": test}, "given")
    assert parts.train.item_count == 10
    assert "only 1 of the 3 items of test" in caplog.text


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"test": random_log()}, "no train part, found: test"),
        ({"train": random_log(), "tset": random_log()}, "unknown part 'tset'"),
        ({"train": random_log()}, "no test part"),
        (5, "give a folder, the name of a dataset, or a dict of parts"),
        (random_log(), "give a folder, the name of a dataset, or a dict of parts"),
    ],
)
def test_parts_that_are_none(data: Any, problem: str) -> None:
    with pytest.raises(caged.CagedError, match=problem):
        caged.split(data, "given")


def test_one_log_is_no_given_split(log_csv: Path) -> None:
    with pytest.raises(DataError, match="is one log, not a split"):
        caged.split(log_csv, "given")
    with pytest.raises(ConfigError, match=r"read a file with caged\.Interactions.read"):
        caged.split(log_csv)
    with pytest.raises(DataError, match="keep their sizes; leave test_share out"):
        caged.split({"train": random_log()}, "given", test_share=0.5)


def test_columns_that_are_read_can_be_validated_on(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    marked_log().to_arrow().to_pandas().to_parquet(path)
    data = caged.Interactions.read(path, keep=["source"])
    assert caged.split(data, validate_on="source=explore").valid is not None
    assert data.fingerprint == read_log(path, columns=Columns(keep=("source",))).fingerprint
    with pytest.raises(DataError, match="column 'source' was not read"):
        caged.split(caged.Interactions.read(path), validate_on="source=explore")
