"""`caged demo` on a market that is small enough to take no time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import caged.cli.demo as command
from caged.data.market import MarketConfig
from caged.products.demo.experiment import METHODS, run_demo
from caged.products.serve.export import artefact_of_run
from tests.cli.invoke import caged, contents
from tests.page.pages import check_page
from tests.products.demo.demos import DEMO

TINY = MarketConfig(user_count=80, item_count=60, rounds=10, test_rounds=5, slots=8, rank=4, shortlist=20)
FILES = {"demo.json", "report.html"}


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The demo with made-up results; the list holds the seeds that were asked for."""
    seeds: list[int] = []

    def pretend(*, seed: int, **_: object) -> object:
        seeds.append(seed)
        return DEMO

    monkeypatch.setattr(command, "run_demo", pretend)
    return seeds


def test_the_demo_trains_prints_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "run_demo", partial(run_demo, config=TINY))
    outcome = caged("demo", "--out", tmp_path / "shown", "--seed", "3", "--device", "cpu")
    assert outcome.code == 0, outcome.err
    pages = {f"audit-{method.replace(' ', '-')}.html" for method in METHODS}
    written = set(contents(tmp_path / "shown"))
    assert {name for name in written if not name.startswith("models")} == FILES | pages
    for page in pages:
        check_page((tmp_path / "shown" / page).read_text(encoding="utf-8"))
        assert f'<a href="{page}">' in (tmp_path / "shown" / "report.html").read_text(encoding="utf-8")
        assert '<a href="report.html">Back to the demo</a>' in (tmp_path / "shown" / page).read_text(encoding="utf-8")
    numbers = json.loads((tmp_path / "shown" / "demo.json").read_text())
    assert numbers["market"]["seed"] == 3
    assert [row["method"] for row in numbers["rows"]] == list(METHODS)
    assert f"{numbers['rows'][1]['oracle']['recall@20']:.2%}" in outcome.out
    assert [len(visitor["lists"]) for visitor in numbers["visitors"]] == [len(METHODS)] * 3
    recalls = {row["method"]: row["oracle"]["recall@20"] for row in numbers["rows"]}
    assert [found["method"] for found in numbers["differences"]] == [name for name in METHODS if name != "lightgcn"]
    for found in numbers["differences"]:
        assert found["mean"] == pytest.approx(recalls[found["method"]] - recalls["lightgcn"])
        assert found["low"] <= found["mean"] <= found["high"]
        mean, low, high = (f"{100 * found[name]:+.2f}" for name in ("mean", "low", "high"))
        assert f"{mean} pp [{low}, {high}]" in outcome.out
    for sentence in numbers["sentences"]:
        assert sentence in outcome.out
    assert "simulated 10 rounds" in outcome.err
    assert str(tmp_path / "shown" / "report.html") in outcome.err
    check_page((tmp_path / "shown" / "report.html").read_text(encoding="utf-8"))


def test_the_demo_keeps_its_models_and_says_how_to_explore_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"config": TINY, "methods": ("lightgcn", "softmax", "lightgcn adjusted")}
    monkeypatch.setattr(command, "run_demo", partial(run_demo, **small))
    for _ in range(2):  # a second run replaces them
        outcome = caged("demo", "--device", "cpu", cwd=tmp_path)
        assert outcome.code == 0, outcome.err
    assert outcome.err.splitlines()[-1] == "  caged explore demo/models/lightgcn demo/models/softmax"
    folders = {path.name for path in (tmp_path / "demo" / "models").iterdir()}
    assert folders == {"lightgcn", "softmax", "lightgcn-adjusted"}
    for name in folders:
        manifest = artefact_of_run(tmp_path / "demo" / "models" / name, tmp_path / name, device="cpu")
        assert "title" in manifest.attributes
        assert manifest.price["curve"]["valid"]


def test_everything_of_the_demo_is_in_its_file(tmp_path: Path, untrained: list[int]) -> None:
    outcome = caged("demo", "--seed", "5", "--json", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert untrained == [5]
    numbers = json.loads((tmp_path / "demo" / "demo.json").read_text())
    assert json.loads(outcome.out) == numbers
    assert set(DEMO.__dataclass_fields__) | {"sentences", "command", "versions"} == set(numbers)
    assert numbers["command"] == "caged demo --seed 5 --json"
    assert numbers["rows"][1]["exposure_by_bucket"] == DEMO.rows[1].exposure_by_bucket


def test_a_second_run_replaces_the_two_files_and_nothing_else(tmp_path: Path, untrained: list[int]) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "notes.txt").write_text("mine")
    (tmp_path / "demo" / "report.html").write_text("old")
    assert caged("demo", cwd=tmp_path).code == 0
    assert set(contents(tmp_path / "demo")) == FILES | {"notes.txt"}
    assert (tmp_path / "demo" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "demo" / "report.html").read_text().startswith("<!doctype html>")


def test_the_table_is_plain_text_in_a_pipe(tmp_path: Path, untrained: list[int]) -> None:
    lines = caged("demo", cwd=tmp_path).out.splitlines()
    assert any(
        line.split() == ["LightGCN", "40.00%", "4.00%", "5.50%", "-", "0.55%", "51.00%", "12.34%"] for line in lines
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "file"], ("output folder file is a file", "--out")),
        (["--out", "file/below"], ("cannot write to output folder file/below",)),
        (["--out", "x" * 300], ("cannot write to output folder", "name too long")),
        (["--out", "taken"], ("taken/report.html is a folder",)),
        (["--out", "full"], ("full/models/softmax is not empty",)),
        (["--seed", "-1"], ("seed is -1",)),
        (["--seed", "many"], ("--seed", "caged demo --help")),
        (["--device", "gpu"], ("unknown device 'gpu'", "auto, cpu, cuda")),
    ],
)
def test_bad_input_is_refused_before_training(
    arguments: list[str], words: tuple[str, ...], tmp_path: Path, untrained: list[int]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "taken" / "report.html").mkdir(parents=True)
    (tmp_path / "full" / "models" / "softmax").mkdir(parents=True)
    (tmp_path / "full" / "models" / "softmax" / "notes.txt").write_text("mine")
    before = contents(tmp_path)
    outcome = caged("demo", *arguments, cwd=tmp_path)
    assert outcome.code == 2
    for word in words:
        assert word.lower() in outcome.error.lower()
    assert not untrained
    assert contents(tmp_path) == before


def test_a_missing_extra_is_named_before_training(
    tmp_path: Path, untrained: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caged.page.html.importlib.util.find_spec", lambda name: None)
    outcome = caged("demo", cwd=tmp_path)
    assert outcome.code == 2
    assert "caged-rec[report]" in outcome.error
    assert not untrained
    assert not contents(tmp_path)
