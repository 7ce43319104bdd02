"""The commands that a page proposes: with the names of the reader's own files, and as they can be typed."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caged as package
from caged.page.html import Headline
from caged.products.audit import remedies as module
from caged.products.audit.remedies import commands_for, remedies
from caged.products.audit.view import audit
from tests.cli.invoke import caged


def typed(command: str) -> list[str]:
    return [line for _, line in commands_for(command)]


def test_the_page_of_a_run_names_the_run_and_its_data() -> None:
    found = typed("caged train --data 'my log.csv' --method lightgcn --out runs/first")
    assert found[0] == "caged adjust runs/first -o runs/first-adjusted"
    assert found[1] == "caged train --data 'my log.csv' --method softmax --out runs/first-softmax"
    assert found[2].startswith("caged compare runs/first runs/first-adjusted runs/first-softmax")
    assert typed("caged evaluate runs/first --part valid")[0] == "caged adjust runs/first -o runs/first-adjusted"
    assert typed("caged train --resume runs/first")[0] == "caged adjust runs/first -o runs/first-adjusted"


@pytest.mark.parametrize(
    "words", ["--method ease", "--method lightgcn --protocol paper", "--method lightgcn --refit", "--method mostpop"]
)
def test_a_run_that_keeps_no_validation_part_is_told_a_strength(words: str) -> None:
    """None could be chosen for it."""
    found = typed(f"caged train --data log.csv {words} --out runs/first")
    assert found[0] == "caged adjust runs/first --strength 0.2 -o runs/first-adjusted"


def test_the_page_of_lists_names_the_files() -> None:
    first, second, third = typed("caged audit recs.csv --train=t.csv --valid v.csv --test x.csv -k 10")
    assert first == "caged adjust recs.csv --train t.csv --valid v.csv --keep 99% --test x.csv -o adjusted.parquet"
    assert second == "caged audit adjusted.parquet --train t.csv --test x.csv --html adjusted.html"
    assert third == "caged train --data t.csv --method softmax --out runs/softmax"
    assert "--strength 0.2" in typed("caged audit recs.csv --train t.csv")[0]


def test_without_a_command_there_are_names_to_fill_in() -> None:
    assert typed("")[0].startswith("caged adjust lists.parquet --train train.csv")


def test_what_is_proposed_can_be_typed(log_csv: Path, tmp_path: Path) -> None:
    """Every command of a page is run as it stands, on lists that are captured."""
    log = package.split(package.Interactions.read(log_csv))
    for name, part in log.parts.items():
        frame = {"user_id": part.user_ids.external(part.users), "item_id": part.item_ids.external(part.items)}
        pq.write_table(pa.table(frame), tmp_path / f"{name}.parquet")
    model = package.MostPopular(device="cpu").fit(log.train)
    pq.write_table(model.recommend(k=40, exclude_seen=False), tmp_path / "recs.parquet")
    lines = commands_for("caged audit recs.parquet --train train.parquet --valid valid.parquet --test test.parquet")
    first = shlex.split(lines[0][1])[1:]
    outcome = caged(*first, "-k", "5", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    outcome = caged(*shlex.split(lines[1][1])[1:], "-k", "5", cwd=tmp_path)
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("level", [0, 1, 4])
def test_only_lists_that_are_captured_get_advice(level: int, log_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = package.split(package.Interactions.read(log_csv))
    lists = package.MostPopular(device="cpu").fit(log.train).recommend(k=10)
    result = replace(audit(lists, log.train, log.test, k=10).result, command="caged audit a.csv --train b.csv")
    monkeypatch.setattr(module, "severity", lambda audit: Headline("", level=level, grade="", meaning=""))
    section = remedies(result)
    assert (section is None) == (level == 0)
    if section is not None:
        assert "caged adjust a.csv --train b.csv" in section.commands[0][1]
