"""Groups of the user's choice, and vectors of the items, in `caged audit`, `caged evaluate` and `caged compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import caged as package
from caged.data.vector_files import NamedVectors, write_vectors
from caged.evaluation.adjust import Adjustment
from caged.runs.artefact import load_artefact
from caged.runs.vectors import item_vectors_of, vectors_of
from tests.cli.invoke import Outcome, caged, refused, train
from tests.conftest import Pair, write_log
from tests.page.pages import check_page

K = 5
GENRES = ["Action|Film Noir", "Drama", "<b>Odd</b>", ""]
NAMES = ["<b>Odd</b>", "Action", "Drama", "Film Noir"]


@pytest.fixture(scope="module")
def parts(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.csv, test.csv, lists by popularity and by name, movies.csv with genres, people.csv with an age band."""
    folder = tmp_path_factory.mktemp("parts")
    held_out = set(pairs[::4])
    known = [pair for pair in pairs if pair not in held_out]
    write_log(folder / "train.csv", known)
    write_log(folder / "test.csv", sorted(held_out))
    users, items = sorted({user for user, _ in pairs}), sorted({item for _, item in pairs})
    counts = {item: sum(other == item for _, other in known) for item in items}
    orders = {"popular": sorted(items, key=lambda item: -counts[item]), "named": items[::-1]}
    for name, order in orders.items():
        rows = [
            (user, item, str(rank))
            for user in users
            for rank, item in enumerate([item for item in order if (user, item) not in set(known)][:K], start=1)
        ]
        write_log(folder / f"{name}.csv", rows, "user_id,item_id,rank")  # type: ignore[arg-type]
    write_log(folder / "movies.csv", [(item, GENRES[n % 4]) for n, item in enumerate(items)], "item_id,genre")
    write_log(folder / "others.csv", [(item, GENRES[n % 3]) for n, item in enumerate(items)], "item_id,genre")
    write_log(
        folder / "people.csv", [(user, "18-24" if n % 2 else "25+") for n, user in enumerate(users)], "user_id,age"
    )
    return folder


def audit(parts: Path, *arguments: str | Path, lists: str = "popular") -> Outcome:
    files = ("--train", parts / "train.csv", "--test", parts / "test.csv")
    return caged("audit", parts / f"{lists}.csv", *files, "-k", str(K), *arguments)


def chosen(parts: Path, movies: str = "movies.csv") -> tuple[str | Path, ...]:
    groups = ("--item-groups", parts / movies, "--user-groups", parts / "people.csv", "--group-separator", "|")
    return (*groups,)


def numbers(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    content: dict[str, Any] = json.loads(outcome.out)
    return content


@pytest.fixture(scope="module")
def audits(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits")
    for name, lists, movies in (
        ("old", "named", "movies.csv"),
        ("new", "popular", "movies.csv"),
        ("else", "popular", "others.csv"),
    ):
        numbers(audit(parts, *chosen(parts, movies), "-o", folder / name, "--json", lists=lists))
    return folder


# -------------------------------------------------------------------- audit


def test_every_group_is_measured_and_told(parts: Path) -> None:
    found = numbers(audit(parts, *chosen(parts), "--json"))
    for key in (
        "recall@5/genre=Film%20Noir",
        "ndcg@5/genre=%3Cb%3EOdd%3C%2Fb%3E",
        "exposure_rate@5/genre=Drama",
        "coverage@5/genre=Drama",
        "rsp@5/genre",
        "reo@5/genre",
        "popularity_lift@5/user:age=18-24",
    ):
        assert found["metrics"][key] is not None, key
    assert "recall@5/user:age=25+" in found["intervals"]
    assert "genre: 10 of the 40 items are in no group and count in none." in found["notes"]
    assert [family["family"] for family in found["groups"]] == ["genre", "age"]
    assert [group["name"] for group in found["groups"][0]["groups"]] == NAMES


def test_the_terminal_has_a_table_for_each_family(parts: Path) -> None:
    out = audit(parts, *chosen(parts)).out
    assert "Items by genre: rsp@5/genre 0." in out
    assert "Users by age" in out
    assert all(f"\n{name} " in out for name in (*NAMES, "18-24", "25+"))


def test_without_choices_nothing_changes(parts: Path, tmp_path: Path) -> None:
    """A share of a fifth is what was always there, to the byte."""
    numbers(audit(parts, "-o", tmp_path / "plain", "--json"))
    numbers(audit(parts, "--popular-share", "0.2", "-o", tmp_path / "fifth", "--json"))
    for name in ("metrics.json", "per_user.parquet", "sums.parquet", "exposure.parquet"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "fifth" / name).read_bytes()
    assert "popular_share" not in (tmp_path / "plain" / "metrics.json").read_text()


def test_another_share_changes_popular_and_niche_and_the_words(parts: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    outcome = audit(parts, "--popular-share", "0.1", "--html", page)
    assert "the most popular tenth of the items fills" in outcome.out
    text = page.read_text()
    assert "most popular fifth" not in text
    assert "the most popular tenth of the items with training interactions" in text
    found = numbers(audit(parts, "--popular-share", "0.1", "--json"))
    assert found["counts"]["items_popular"] == found["counts"]["items_trained"] // 10
    refused(audit(parts, "--popular-share", "1"), "popular_share is 1.0", "between 0 and 1")


def test_the_page_has_a_section_for_each_family(parts: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert audit(parts, *chosen(parts), "--html", page).code == 0
    text = page.read_text()
    check_page(text)
    assert "<h2>Items by genre <a" in text
    assert "<h2>Users by age <a" in text
    assert "&lt;b&gt;Odd&lt;/b&gt;" in text
    assert "<b>Odd" not in text


def test_in_python_tables_may_be_frames(parts: Path) -> None:
    import pandas as pd

    movies = pd.read_csv(parts / "movies.csv")
    movies["genre"] = movies["genre"].fillna("").str.split("|")
    found = package.audit(
        parts / "popular.csv", parts / "train.csv", parts / "test.csv", k=K, item_groups=movies, popular_share=0.1
    )
    same = numbers(audit(parts, *chosen(parts), "--popular-share", "0.1", "--json"))
    assert found.metrics["recall@5/genre=Film%20Noir"] == same["metrics"]["recall@5/genre=Film%20Noir"]
    assert "Items by genre" in str(found)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("item_id,kind\nx1,a\nx2,b\n", ("no item in common with the logs", "'x1'")),
        ("item_id,kind\n1,a\n2,b\n", ("holds integers", "train has text")),
        ("item_id,kind\ni01,a\ni01,b\n", ("item 'i01' has kind 'a' in one row and 'b' in another",)),
        ("thing,kind\ni01,a\n", ("has no column 'item_id'", "--item-column")),
        ("item_id,kind\n", ("holds no items",)),
        ("", ("is empty",)),
        ("item_id,price\n" + "".join(f"i{n:02d},{n}.5\n" for n in range(60)), ("60 different", "at most 50 groups")),
    ],
)
def test_bad_tables_are_one_sentence(parts: Path, tmp_path: Path, table: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "groups.csv"
    path.write_text(table)
    refused(audit(parts, "--item-groups", path), *words)


# -------------------------------------------------------------------- gates and comparisons


def test_gates_judge_groups(parts: Path, audits: Path) -> None:
    groups = chosen(parts)
    failed = audit(parts, *groups, "--fail-if", "recall@5/genre=Film Noir<0.99")
    assert failed.code == 1
    assert "gate FAILED: recall@5/genre=Film Noir<0.99: recall@5/genre=Film%20Noir is 0." in failed.err
    assert audit(parts, *groups, "--fail-if", "rsp@5/genre > 2").code == 0
    against = ("--against", audits / "old")
    risen = audit(parts, *groups, *against, "--fail-if", "tail_share@5/user:age=18-24 drops 1% surely")
    assert risen.code == 1, risen.err
    assert "95% interval of the difference" in risen.err
    passed = audit(parts, *groups, *against, "--fail-if", "coverage@5/genre=Drama rises 900%")
    assert passed.code == 0, passed.err
    assert "gate passed: coverage@5/genre=Drama rises 900%" in passed.err


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("recall@5/genre=Dramma<0.1", ("the groups are", "did you mean 'genre=Drama'", "--item-groups")),
        ("rsp@5/genres>1", ("the groups are genre;", "--item-groups")),
        ("upd@5/user:country=FR>1", ("user:age=18-24", "--user-groups")),
    ],
)
def test_gates_on_groups_that_nobody_chose(parts: Path, gate: str, words: tuple[str, ...]) -> None:
    refused(audit(parts, *chosen(parts), "--fail-if", gate), *words)


def test_gates_against_other_groups_are_refused(parts: Path, audits: Path) -> None:
    groups, against = chosen(parts), ("--against", audits / "else")
    refused(
        audit(parts, *groups, *against, "--fail-if", "recall@5/genre=Drama drops 1%"),
        "cannot be judged against",
        "the items are sorted otherwise into the groups of genre",
        "--item-groups",
    )
    other = audit(parts, *groups, *against, "--fail-if", "recall@5 drops 50%")
    assert other.code == 0
    assert "sorted otherwise into the groups of genre" in other.err
    refused(
        audit(parts, "--popular-share", "0.1", *against, "--fail-if", "recall@5/niche drops 1%"),
        "popular and niche items differ (the most popular 0.2 of them, and 0.1)",
    )


def test_comparisons_show_groups_where_all_folders_have_the_same(audits: Path, tmp_path: Path) -> None:
    page, table = tmp_path / "compare.html", tmp_path / "compare.tex"
    keys = "recall@5/genre=Film%20Noir,rsp@5/genre,popularity_lift@5/user:age=18-24,exposure_rate@5/genre=Drama"
    keys += ",miscalibration@5/genre,intra_list_diversity@5/genre"
    found = numbers(caged("compare", audits / "old", audits / "new", "--metrics", keys, "--latex", table, "--json"))
    assert found["metrics"] == keys.split(",")
    by_metric = {one["metric"]: one for one in found["differences"]}
    lift = by_metric["popularity_lift@5/user:age=18-24"]
    assert lift["users"] == 30
    assert [by_metric[f"{name}@5/genre"]["users"] for name in ("miscalibration", "intra_list_diversity")] == [60, 60]
    assert lift["difference"] == pytest.approx(lift["value"] - lift["baseline_value"], abs=1e-12)
    assert all(one["interval"] is not None for one in found["differences"])
    assert r"genre=Film\%20Noir" in table.read_text()
    outcome = caged("compare", audits / "old", audits / "new", "--html", page)
    assert "All folders have metrics by genre, age, which are not compared here" in outcome.out
    text = page.read_text()
    check_page(text)
    assert "<h2>Items by genre <a" in text
    assert "recall@5/genre=Film%20Noir" in text


def test_comparisons_of_other_groups_are_refused(audits: Path) -> None:
    folders = (audits / "old", audits / "else")
    refused(
        caged("compare", *folders, "--metrics", "rsp@5/genre"),
        "rsp@5/genre cannot be compared",
        "the items are sorted otherwise into the groups of genre",
    )
    shown = caged("compare", *folders, "--metrics", "recall@5/user:age=18-24,recall@5")
    assert shown.code == 0
    assert "warning: " in shown.err


def test_stored_users_say_in_which_groups_they_are(audits: Path) -> None:
    stored = pq.read_table(audits / "new" / "per_user.parquet")
    assert sum(stored["user:age=18-24"].to_pylist()) == sum(stored["user:age=25+"].to_pylist()) == 30


# -------------------------------------------------------------------- evaluate and train


def test_evaluate_takes_the_same_options(finished_run: Path, parts: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    outcome = caged("evaluate", finished_run, *chosen(parts), "--html", page)
    assert outcome.code == 0, outcome.err
    assert "items by genre: rsp@20/genre" in outcome.out
    assert "note: genre: 10 of the 40 items are in no group" in outcome.err
    assert "<h2>Users by age <a" in page.read_text()
    usual, fewer = (
        numbers(caged("evaluate", finished_run, "--json", *more))["metrics"]
        for more in ((), ("--popular-share", "0.05"))
    )
    assert usual["recall@20"] == fewer["recall@20"]
    assert usual["tail_share@20"] < fewer["tail_share@20"]


# -------------------------------------------------------------------- vectors of the items

DIVERSITY = f"intra_list_diversity@{K}"


@pytest.fixture(scope="module")
def vectors(parts: Path) -> Path:
    """items.parquet, the same as a frame would be; other.safetensors with other numbers; both lack one item."""
    items = sorted({line.split(",")[0] for line in (parts / "movies.csv").read_text().splitlines()[1:]})[:-1]
    rng = np.random.default_rng(0)
    for name in ("items.parquet", "other.safetensors"):
        write_vectors(parts / name, "item_id", NamedVectors(pa.array(items), rng.normal(size=(len(items), 3))))
    return parts


@pytest.fixture(scope="module")
def diverse(vectors: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diverse")
    for name, lists, file in (
        ("old", "named", "items.parquet"),
        ("new", "popular", "items.parquet"),
        ("else", "popular", "other.safetensors"),
    ):
        numbers(audit(vectors, "--item-vectors", vectors / file, "-o", folder / name, "--json", lists=lists))
    return folder


def test_vectors_say_how_diverse_lists_are(vectors: Path, tmp_path: Path) -> None:
    page, given = tmp_path / "page.html", ("--item-vectors", vectors / "items.parquet")
    found = numbers(audit(vectors, *given, "--json", "--html", page))
    low, high = found["intervals"][DIVERSITY]
    assert low < found["metrics"][DIVERSITY] < high
    assert any("vectors: 1 of the 40 items have none" in note for note in found["notes"])
    check_page(page.read_text())
    assert DIVERSITY in page.read_text()
    assert DIVERSITY in audit(vectors, *given).out
    plain = numbers(audit(vectors, "--json"))["metrics"]
    assert {key: value for key, value in found["metrics"].items() if key != DIVERSITY} == plain
    frame = pq.read_table(vectors / "items.parquet").to_pandas()
    files = (vectors / "popular.csv", vectors / "train.csv", vectors / "test.csv")
    assert package.audit(*files, k=K, item_vectors=frame).metrics[DIVERSITY] == found["metrics"][DIVERSITY]


def test_bad_vectors_are_one_sentence(vectors: Path, tmp_path: Path) -> None:
    refused(audit(vectors, "--item-vectors", vectors / "movies.csv"), "end in .parquet or .safetensors")
    refused(audit(vectors, "--item-vectors", tmp_path / "none.parquet"), "there is no file")
    pq.write_table(pa.table({"item_id": ["x"], "vector": [[1.0]]}), tmp_path / "x.parquet")
    refused(audit(vectors, "--item-vectors", tmp_path / "x.parquet"), "no item in common with the logs", "'x'")


def test_gates_judge_diversity_by_the_same_vectors(vectors: Path, diverse: Path, audits: Path) -> None:
    given, drops = ("--item-vectors", vectors / "items.parquet"), ("--fail-if", f"{DIVERSITY} drops 90%")
    assert audit(vectors, *given, "--fail-if", f"{DIVERSITY} < 1.99").code == 1
    refused(audit(vectors, "--fail-if", f"{DIVERSITY} < 0.1"), "rests on vectors of the items", "--item-vectors FILE")
    assert audit(vectors, *given, "--against", diverse / "old", *drops).code == 0
    refused(audit(vectors, *given, "--against", audits / "old", *drops), "with the same --item-vectors")
    refused(
        audit(vectors, *given, "--against", diverse / "else", *drops),
        "cannot be judged against",
        "the vectors of the items differ, there and here; use the same --item-vectors for both",
    )


def test_comparisons_of_diversity_need_the_same_vectors(diverse: Path) -> None:
    asked = ("--metrics", f"recall@{K},{DIVERSITY}")
    found = numbers(caged("compare", diverse / "old", diverse / "new", *asked, "--json"))
    (difference,) = (one for one in found["differences"] if one["metric"] == DIVERSITY)
    assert difference["users"] == 60
    assert difference["interval"] is not None
    refused(
        caged("compare", diverse / "old", diverse / "else", *asked),
        f"{DIVERSITY} cannot be compared",
        "the vectors of the items differ",
    )


def test_a_run_is_measured_by_its_own_vectors_or_by_others(
    finished_run: Path, log_csv: Path, vectors: Path, tmp_path: Path
) -> None:
    assert caged("export", "vectors", finished_run, "-o", tmp_path / "own").code == 0
    plain, own, same, other = (
        numbers(caged("evaluate", finished_run, "--json", *more))["metrics"]
        for more in (
            (),
            ("--item-vectors", "own"),
            ("--item-vectors", tmp_path / "own" / "items.parquet"),
            ("--item-vectors", vectors / "items.parquet"),
        )
    )
    key = "intra_list_diversity@20"
    assert own == same == {**plain, key: own[key]}
    assert own[key] != other[key]
    assert key in caged("evaluate", finished_run, "--item-vectors", "own").out
    train(log_csv, tmp_path / "ease", method="ease")
    refused(caged("evaluate", tmp_path / "ease", "--item-vectors", "own"), "ease has no vectors")


def test_an_adjusted_run_is_measured_by_the_vectors_it_was_trained_to(finished_run: Path) -> None:
    fitted = load_artefact(finished_run, torch.device("cpu"))
    changed = replace(fitted, adjustment=Adjustment("degree", 1.0))
    assert item_vectors_of("lightgcn", changed).checksum == item_vectors_of("lightgcn", fitted).checksum
    assert vectors_of("lightgcn", changed).width == vectors_of("lightgcn", fitted).width + 1
