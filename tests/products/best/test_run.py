"""From a log to a folder that recommends; what is chosen never depends on the test part, nor on a kill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caged
from caged.data import Interactions
from caged.errors import ConfigError, DataError, RunError
from caged.files import read_sealed_json
from caged.products.best import AlreadyFinished, find_best
from caged.products.best import run as module
from caged.products.best import search as search_module
from caged.training import Interrupted
from tests.cli.invoke import caged as command
from tests.products.best.searches import wish, written


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log and what was found for it."""
    folder = tmp_path_factory.mktemp("best")
    find_best(wish(written(folder)), folder / "best", command="caged best log.csv")
    return folder


def choice_of(folder: Path) -> Any:
    return read_sealed_json(folder / "search" / "choice.json")


def test_the_folder_holds_the_answer_and_nothing_half_done(finished: Path) -> None:
    names = sorted(file.name for file in (finished / "best").iterdir())
    assert names == ["audit-after.html", "audit-before.html", "best.json", "model", "report.html", "search"]
    assert sorted(file.name for file in (finished / "best/search").iterdir()) == [
        "choice.json",
        "journal.jsonl",
        "plan.json",
    ]
    told = read_sealed_json(finished / "best" / "best.json")
    assert told["chosen"]["within"]
    assert {row["role"] for row in told["test"]} >= {"chosen"}
    assert set(told["seconds"]) == {"mostpop", "ease", "lightgcn", "softmax", "total"}
    assert (finished / "best" / "report.html").read_text(encoding="utf-8").count("Serve ") >= 1


def test_the_choice_follows_the_rule(finished: Path) -> None:
    choice = choice_of(finished / "best")
    recall, niche = choice["recall"], choice["niche"]
    plain = [one["metrics"][recall] for one in choice["candidates"] if one["strength"] is None]
    assert choice["limit"] == pytest.approx(0.8 * max(plain))
    within = [one for one in choice["candidates"] if one["metrics"][recall] >= choice["limit"]]
    assert choice["chosen"]["metrics"][niche] == max(one["metrics"][niche] for one in within)
    assert any(one["strength"] is not None for one in choice["candidates"])
    assert all(one["within"] for one in choice["candidates"] if one["strength"] is not None)


def test_the_served_model_knows_the_whole_log(finished: Path) -> None:
    log = Interactions.read(finished / "log.csv")
    model = caged.load(finished / "best" / "model", device="cpu")
    assert model.artefact.train.fingerprint == log.fingerprint
    assert model.artefact.valid is None
    chosen = choice_of(finished / "best")["chosen"]
    assert model.name == chosen["method"]
    strength = None if model.artefact.adjustment is None else model.artefact.adjustment.strength
    assert strength == chosen["strength"]


def test_the_model_recommends_and_becomes_an_artefact(finished: Path) -> None:
    recommend, export, _ = read_sealed_json(finished / "best" / "best.json")["next"]
    for words in (f"{recommend} --device cpu", f"{export} --device cpu"):
        outcome = command(*words.replace(str(finished), ".").split()[1:], cwd=finished)
        assert outcome.code == 0, outcome.err
    assert (finished / "best" / "artefact" / "manifest.json").is_file()


def test_noise_in_the_test_part_changes_no_choice(tmp_path: Path) -> None:
    log = Interactions.read(written(tmp_path))
    split = caged.split(log, seed=1)
    chosen, tested = [], []
    for name in ("real", "noise"):
        folder = tmp_path / name
        folder.mkdir()
        for part in ("train", "valid", "test"):
            write_part(folder / f"{part}.csv", split, part, noise=name == "noise")
        find_best(wish(folder), tmp_path / f"best-{name}")
        chosen.append(choice_of(tmp_path / f"best-{name}"))
        tested.append(read_sealed_json(tmp_path / f"best-{name}" / "best.json")["test"])
    assert chosen[0] == chosen[1]
    assert tested[0] != tested[1]


def write_part(path: Path, split: caged.Split, part: str, *, noise: bool) -> None:
    """As it is; or, of the test part, other items that the same users did not have, all items named once."""
    pairs = getattr(split, part)
    users, items = pairs.users, pairs.items
    if noise and part == "test":
        taken = {(user, item) for one in split.parts.values() for user, item in zip(one.users, one.items, strict=True)}
        generator = np.random.default_rng(3)
        drawn = [(user, item) for user in set(users.tolist()) for item in generator.permutation(40)[:20]]
        drawn = [pair for pair in drawn if pair not in taken]
        users, items = np.array([user for user, _ in drawn]), np.array([item for _, item in drawn])
    rows = zip(
        split.train.user_ids.external(users).to_pylist(), split.train.item_ids.external(items).to_pylist(), strict=True
    )
    path.write_text("user_id,item_id\n" + "".join(f"{user},{item}\n" for user, item in rows), encoding="utf-8")


@pytest.mark.parametrize("after", [0, 3, 6])
def test_a_killed_search_goes_on_to_the_same_choice(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The process dies in the middle of a training: after its start is in the journal, before its end."""
    whole = search_module.run_trial
    calls = 0

    def dies(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt
        return whole(*arguments, **options)

    monkeypatch.setattr(search_module, "run_trial", dies)
    with pytest.raises(KeyboardInterrupt):
        find_best(wish(finished / "log.csv"), tmp_path / "best")
    assert not (tmp_path / "best" / "best.json").exists()
    monkeypatch.setattr(search_module, "run_trial", whole)
    with pytest.raises(RunError, match="go on with --resume"):
        find_best(wish(finished / "log.csv"), tmp_path / "best")
    find_best(wish(finished / "log.csv"), tmp_path / "best", go_on=True)
    assert choice_of(tmp_path / "best") == choice_of(finished / "best")


@pytest.mark.parametrize("place", ["judge_once", "write_model", "answer_html"])
def test_one_that_was_killed_after_the_choice_chooses_no_more(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, place, dies)
        with pytest.raises(KeyboardInterrupt):
            find_best(wish(finished / "log.csv"), tmp_path / "best")
    monkeypatch.setattr(search_module, "run_trial", dies)
    answer = find_best(wish(finished / "log.csv"), tmp_path / "best", go_on=True)
    assert answer.choice.to_json() == choice_of(finished / "best") | {
        "candidates": answer.choice.to_json()["candidates"]
    }
    assert (tmp_path / "best" / "model" / "checkpoint.json").is_file()


def test_who_asks_to_stop_is_heard_at_every_step(finished: Path, tmp_path: Path) -> None:
    asked = 0

    def stop_after(count: int) -> Callable[[], bool]:
        nonlocal asked
        asked = 0

        def stop() -> bool:
            nonlocal asked
            asked += 1
            return asked > count

        return stop

    for count in (0, 2, 8):
        with pytest.raises(Interrupted):
            find_best(wish(finished / "log.csv"), tmp_path / "best", go_on=count > 0, stop_requested=stop_after(count))
    find_best(wish(finished / "log.csv"), tmp_path / "best", go_on=True)
    assert choice_of(tmp_path / "best") == choice_of(finished / "best")


def test_what_is_finished_is_left_as_it_is(finished: Path) -> None:
    with pytest.raises(AlreadyFinished):
        find_best(wish(finished / "log.csv"), finished / "best", go_on=True)


def test_another_wish_does_not_go_on(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        find_best(wish(finished / "log.csv"), tmp_path / "best", stop_requested=lambda: True)
    with pytest.raises(ConfigError, match="--seed is 2, but this search began with 1"):
        find_best(wish(finished / "log.csv", seed=2), tmp_path / "best", go_on=True)


def test_another_log_does_not_go_on(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        find_best(wish(finished / "log.csv"), tmp_path / "best", stop_requested=lambda: True)
    longer = tmp_path / "longer.csv"
    longer.write_text((finished / "log.csv").read_text(encoding="utf-8") + "u00,new\n", encoding="utf-8")
    with pytest.raises(RunError, match="is not what it was"):
        find_best(wish(longer), tmp_path / "best", go_on=True)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(f"u{user}", f"i{item}") for user in range(5) for item in range(5)], "has 25 pairs.*at least 50"),
        ([("ann", f"i{item}") for item in range(80)], "has 1 user"),
        ([(f"u{user}", "tea") for user in range(80)], "has 1 item"),
        ([(f"u{user}", f"i{user % 9}") for user in range(80)], "no user has 3 or more interactions"),
    ],
)
def test_a_log_that_is_too_small_is_one_sentence(tmp_path: Path, rows: list[tuple[str, str]], words: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text("user_id,item_id\n" + "".join(f"{user},{item}\n" for user, item in rows), encoding="utf-8")
    with pytest.raises(DataError, match=words):
        find_best(wish(log), tmp_path / "best")
    assert not (tmp_path / "best").exists()
