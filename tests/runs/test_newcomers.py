"""Lists for people who were not in training."""

from __future__ import annotations

import logging
from pathlib import Path

import pandas as pd
import pytest

import caged as package
from tests.cli.invoke import caged, refused


@pytest.fixture(scope="module")
def model(finished_run: Path) -> package.Recommender:
    return package.load(finished_run, device="cpu")


def test_people_come_in_the_order_given_and_without_what_they_had(model: package.Recommender) -> None:
    table = model.recommend_for({"zoe": ["i03", "i05"], "ann": ["i00"]}, 4)
    assert table["user_id"].to_pylist() == ["zoe"] * 4 + ["ann"] * 4
    assert not {"i03", "i05"} & set(table["item_id"].to_pylist()[:4])
    assert "i00" not in table["item_id"].to_pylist()[4:]
    everything = model.recommend_for({"zoe": ["i03", "i05"]}, 40, exclude_seen=False)
    assert {"i03", "i05"} <= set(everything["item_id"].to_pylist())


def test_a_table_is_as_good_as_a_dict(model: package.Recommender) -> None:
    frame = pd.DataFrame({"user_id": ["zoe", "ann", "zoe"], "item_id": ["i03", "i00", "i05"]})
    assert model.recommend_for(frame, 4).equals(model.recommend_for({"zoe": ["i03", "i05"], "ann": ["i00"]}, 4))


def test_unknown_items_are_named(model: package.Recommender, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="caged"):
        table = model.recommend_for({"ann": ["i00", "socks"]}, 4)
    assert "'socks'" in caplog.text
    assert table.equals(model.recommend_for({"ann": ["i00"]}, 4))


def test_who_has_had_nothing_known_is_refused(model: package.Recommender) -> None:
    with pytest.raises(package.CagedError, match="none of the items of 'bob'"):
        model.recommend_for({"ann": ["i00"], "bob": ["socks"]}, 4)
    with pytest.raises(package.CagedError, match="histories is empty"):
        model.recommend_for({}, 4)
    with pytest.raises(package.CagedError, match="give a list of item ids"):
        model.recommend_for({"ann": "i00"}, 4)


def test_on_the_command_line(finished_run: Path, tmp_path: Path, model: package.Recommender) -> None:
    (tmp_path / "basket.csv").write_text("item_id\ni03\ni05\n")
    (tmp_path / "people.csv").write_text("user_id,item_id\nzoe,i03\nzoe,i05\n")
    wanted = model.recommend_for({"new": ["i03", "i05"]}, 3)["item_id"].to_pylist()
    for file in ("basket.csv", "people.csv"):
        outcome = caged("recommend", finished_run, "--history", tmp_path / file, "-k", "3")
        assert outcome.code == 0, outcome.err
        assert [line.split()[2] for line in outcome.out.splitlines() if "i" in line.split()[2]][-3:] == wanted
    refused(caged("recommend", finished_run, "--history", tmp_path / "basket.csv", "--all-users"), "exactly one of")
    refused(caged("recommend", finished_run, "--history", tmp_path / "none.csv"), "none.csv")


def test_macr_refuses_with_its_reason(log_csv: Path) -> None:
    macr = package.MACR(embedding_size=4, epochs=1, device="cpu").fit(package.Interactions.read(log_csv))
    with pytest.raises(package.CagedError, match="branch"):
        macr.recommend_for({"ann": ["i00"]}, 4)
