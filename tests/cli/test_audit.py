"""`caged audit`: lists of any recommender in, a table, a folder, a page and gates out."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caged as package
from caged.errors import CagedError
from caged.files import read_sealed_json, write_sealed_json
from tests.cli.invoke import Outcome, caged, contents, refused, refused_without_a_trace, train
from tests.conftest import Pair, write_log
from tests.page.pages import check_page

K = 5


@pytest.fixture(scope="module")
def parts(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.csv, test.csv and recs.csv: the most popular unseen items, for 59 of the 60 users."""
    folder = tmp_path_factory.mktemp("parts")
    held_out = pairs[::4]
    known = [pair for pair in pairs if pair not in set(held_out)]
    write_log(folder / "train.csv", known)
    write_log(folder / "test.csv", held_out)
    counts = {item: sum(other == item for _, other in known) for _, item in known}
    ranked = sorted(counts, key=lambda item: (-counts[item], item))
    users = sorted({user for user, _ in known})[:-1]
    seen = set(known)
    rows = [
        (user, item, str(rank))
        for user in users
        for rank, item in enumerate([item for item in ranked if (user, item) not in seen][:K], start=1)
    ]
    _write_lists(folder / "recs.csv", rows)
    return folder


def _write_lists(path: Path, rows: Sequence[tuple[str, ...]], header: str = "user_id,item_id,rank") -> Path:
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def rows_of(path: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split(",")) for line in path.read_text().splitlines()[1:]]


def audit(parts: Path, *arguments: str | Path, recs: str | Path = "recs.csv", test: bool = True) -> Outcome:
    given = ["--test", parts / "test.csv"] if test else []
    return caged("audit", parts / recs, "--train", parts / "train.csv", *given, "-k", str(K), *arguments)


def numbers(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    content: dict[str, Any] = json.loads(outcome.out)
    return content


# ---------------------------------------------------------------- what it reports


def test_a_table_with_intervals_and_the_verdict(parts: Path) -> None:
    outcome = audit(parts)
    assert outcome.code == 0, outcome.err
    assert "Audit of recs, test: natural" in outcome.out
    assert re.search(rf"^recall@{K}/niche +0\.\d+ +0\.\d+ to 0\.\d+ +\d+$", outcome.out, re.MULTILINE)
    assert re.search(rf"^coverage@{K} +0\.\d+ +- +59$", outcome.out, re.MULTILINE)
    assert "Clearly captured by popularity: half of all places go to" in outcome.out
    assert "Popular items take much of the room of niche ones: the most popular fifth of the items fills" in outcome.out
    assert "1 user with test items has no list: their accuracy counts as 0." in outcome.err


def test_json_holds_everything(parts: Path) -> None:
    found = numbers(audit(parts, "--json"))
    assert found["evidence"] == "natural"
    assert len(found["verdict"]) == 4
    assert found["severity"] == {"level": 2, "grade": "Clearly captured by popularity"}
    low, high = found["intervals"][f"recall@{K}"]
    assert low <= found["metrics"][f"recall@{K}"] <= high
    assert found["users"][f"recall@{K}"] == 60
    assert found["counts"]["users_relevant_without_list"] == 1
    assert found["gates"] == []


def test_the_page_and_the_folder(parts: Path, tmp_path: Path) -> None:
    page, folder = tmp_path / "report.html", tmp_path / "kept"
    outcome = audit(parts, "--html", page, "-o", folder)
    assert outcome.code == 0, outcome.err
    check_page(page.read_text())
    assert "caged audit" in page.read_text()
    assert {"metrics.json", "audit.json", "per_user.parquet", "report.html"} <= {path.name for path in folder.iterdir()}
    assert (folder / "report.html").read_text() == page.read_text()
    assert len(pq.read_table(folder / "per_user.parquet")) == 60


def test_without_a_test_there_is_no_accuracy(parts: Path) -> None:
    outcome = audit(parts, test=False)
    assert outcome.code == 0, outcome.err
    assert "Audit of recs, no test" in outcome.out
    assert "recall@" not in outcome.out
    assert "cannot say how good they are" in outcome.out
    assert numbers(audit(parts, "--json", test=False))["metrics"][f"recall@{K}"] is None


def test_several_tests_and_what_they_rest_on(parts: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    arguments = ("--evidence", "random", "--also-test", f"oracle={parts / 'test.csv'}", "--html", page, "--json")
    found = numbers(audit(parts, *arguments))
    assert found["evidence"] == "random"
    assert found["further_tests"]["oracle"]["evidence"] == "oracle"
    assert found["further_tests"]["oracle"]["metrics"] == found["metrics"]
    assert "test: Accuracy was measured on items shown at random." in page.read_text()
    assert "oracle: Accuracy was measured against people&#39;s true taste" in page.read_text()


def test_several_cut_offs_and_titles(parts: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("item_id,title\n" + "".join(f"i{item:02d},Title {item}\n" for item in range(45)))
    page = tmp_path / "report.html"
    outcome = audit(parts, "-k", "3,5", "--items", items, "--html", page)
    assert outcome.code == 0, outcome.err
    assert "recall@3" in outcome.out
    assert "recall@5" in outcome.out
    assert "The first 3 recommendations for 59 users, from a catalogue of 45 items" in page.read_text()
    assert "Title 0" in page.read_text()


@pytest.mark.parametrize("header", ["product_id,name", "item_id,product_name", "product_id,title"])
def test_an_item_table_as_shops_have_it(parts: Path, tmp_path: Path, header: str) -> None:
    items, page = tmp_path / "products.csv", tmp_path / "report.html"
    items.write_text(f"{header},price\n" + "".join(f"i{item:02d},Title {item},9.99\n" for item in range(45)))
    outcome = audit(parts, "--items", items, "--html", page)
    assert outcome.code == 0, outcome.err
    assert "Title 0" in page.read_text()
    assert "from a catalogue of 45 items" in page.read_text()


def test_missing_lists_and_seen_items_can_be_left_out(parts: Path, tmp_path: Path) -> None:
    skipped = numbers(audit(parts, "--missing", "skip", "--json"))
    assert skipped["users"][f"recall@{K}"] == 59
    seen = rows_of(parts / "train.csv")[0]
    rows = [(*seen, "0"), *rows_of(parts / "recs.csv")]
    kept = numbers(audit(parts, "--json", recs=_write_lists(tmp_path / "seen.csv", rows)))
    assert any("1 row recommended something the user already had" in note for note in kept["notes"])
    dropped = numbers(audit(parts, "--drop-seen", "--json", recs=tmp_path / "seen.csv"))
    assert dropped["metrics"] == numbers(audit(parts, "--json"))["metrics"]


def test_other_column_names(parts: Path, tmp_path: Path) -> None:
    for name in ("train.csv", "test.csv"):
        write_log(tmp_path / name, [row[:2] for row in rows_of(parts / name)], "reader,book")  # type: ignore[misc]
    names = ("--user-column", "reader", "--item-column", "book")
    given = ("--train", tmp_path / "train.csv", "--test", tmp_path / "test.csv", "-k", str(K), "--json", *names)
    renamed = _write_lists(tmp_path / "recs.csv", rows_of(parts / "recs.csv"), "reader,book,rank")
    expected = numbers(audit(parts, "--json"))["metrics"]
    assert numbers(caged("audit", renamed, *given))["metrics"] == expected
    assert numbers(caged("audit", parts / "recs.csv", *given))["metrics"] == expected  # lists with the usual names


def test_the_python_object_agrees_with_the_command(parts: Path) -> None:
    found = package.audit(str(parts / "recs.csv"), train=str(parts / "train.csv"), test=str(parts / "test.csv"), k=K)
    stored = numbers(audit(parts, "--json"))
    assert found.metrics == pytest.approx(
        {key: np.nan if value is None else value for key, value in stored["metrics"].items()}, nan_ok=True
    )
    assert {key: list(interval[:2]) for key, interval in found.intervals.items()} == stored["intervals"]
    assert found.per_user is not None
    assert found.verdict == stored["verdict"]
    frame = pa.table({"user_id": ["u00"], "item_id": ["i05"], "score": [1.0]})
    assert package.audit(frame, train=str(parts / "train.csv"), k=K).metrics[f"coverage@{K}"] == 1 / 40


# ---------------------------------------------------------------- odd lists


def odd(parts: Path, tmp_path: Path, rows: Sequence[tuple[str, ...]], header: str = "user_id,item_id,rank") -> Any:
    return numbers(audit(parts, "--json", recs=_write_lists(tmp_path / "odd.csv", rows, header)))


def test_unknown_users_and_items_are_kept_and_counted(parts: Path, tmp_path: Path) -> None:
    rows = [*rows_of(parts / "recs.csv"), ("stranger", "i00", "1"), ("u00", "novelty", "9")]
    found = odd(parts, tmp_path, rows)
    assert found["counts"]["users_unknown"] == found["counts"]["items_unknown"] == 1
    assert any("occurs in no log: kept, without a profile" in note for note in found["notes"])
    assert any("joins the catalogue as niche" in note for note in found["notes"])


def test_duplicate_ranks_and_short_lists_are_counted(parts: Path, tmp_path: Path) -> None:
    rows = rows_of(parts / "recs.csv")
    tied = [(user, item, "1" if rank == "2" else rank) for user, item, rank in rows]
    found = odd(parts, tmp_path, tied)
    assert found["counts"]["duplicate_ranks"] == 59
    assert any("had the rank of another item" in note for note in found["notes"])
    short = odd(parts, tmp_path, [row for row in rows if int(row[2]) < 3])
    assert short["counts"][f"lists_shorter_than@{K}"] == 59
    assert any(f"shorter than {K}" in note for note in short["notes"])


def test_nothing_in_common_is_said(parts: Path, tmp_path: Path) -> None:
    found = odd(parts, tmp_path, [("x", "y", "1"), ("x", "z", "2")])
    assert any("do both files use the same user ids?" in note for note in found["notes"])


# ---------------------------------------------------------------- refusals

BAD_LISTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "no rows": ("user_id,item_id,score\n", ("holds no recommendations",)),
    "empty": ("", ("is empty",)),
    "NaN score": ("user_id,item_id,score\nu00,i05,1\nu00,i06,nan\n", ("score", "data row 2")),
    "no number": ("user_id,item_id,score\nu00,i05,good\n", ("'good'", "data row 1")),
    "rank below one": ("user_id,item_id,rank\nu00,i05,-3\n", ("rank", "-3")),
    "no order": ("user_id,item_id\nu00,i05\n", ("neither 'score' nor 'rank'",)),
    "misnamed column": ("use_id,item_id,rank\nu00,i05,1\n", ("no column 'user_id'", "did you mean 'use_id'?")),
    "empty id": ("user_id,item_id,rank\n,i05,1\n", ("is empty", "data row 1")),
}


@pytest.mark.parametrize("case", BAD_LISTS)
def test_bad_lists(case: str, parts: Path, tmp_path: Path) -> None:
    content, words = BAD_LISTS[case]
    (tmp_path / "bad.csv").write_text(content)
    arguments = ["audit", "bad.csv", "--train", str(parts / "train.csv"), "-o", "kept", "--html", "report.html"]
    refused_without_a_trace(tmp_path, arguments, *words)


def test_integers_and_text_never_match(parts: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"user_id": [1, 2], "item_id": [3, 4], "rank": [1, 1]}), tmp_path / "numbers.parquet")
    arguments = ["audit", "numbers.parquet", "--train", str(parts / "train.csv"), "-o", "kept"]
    refused_without_a_trace(tmp_path, arguments, "column 'user_id' holds integers", "train has text")


def test_a_test_that_was_trained_on_is_refused(parts: Path, tmp_path: Path) -> None:
    train_file = str(parts / "train.csv")
    arguments = ["audit", str(parts / "recs.csv"), "--train", train_file, "--test", train_file]
    refused_without_a_trace(tmp_path, arguments, "were also seen in train")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-k", "0"], ("0",)),
        (["-k", "ten"], ("ten",)),
        (["--missing", "drop"], ("drop", "skip, zero")),
        (["--evidence", "strong"], ("unknown evidence 'strong'", "random")),
        (["--also-test", "oracle"], ("--also-test 'oracle'", "NAME=FILE")),
        (["--also-test", "a=test.csv", "--also-test", "a=test.csv"], ("two tests are called 'a'",)),
        (["--html", "nowhere/report.html"], ("--html nowhere/report.html",)),
        (["--against", "nowhere"], ("nowhere",)),
        (["--fail-if", "tail_shar@5<0.2"], ("unknown metric 'tail_shar'", "did you mean 'tail_share'?")),
        (["--fail-if", "recall@5 drops 1%"], ("--against DIR",)),
        (["--fail-if", "recall@20<0.1"], ("k = 20", "add it to -k")),
        (["--test", "absent.csv"], ("absent.csv does not exist",)),
    ],
)
def test_bad_options(arguments: list[str], words: tuple[str, ...], parts: Path, tmp_path: Path) -> None:
    given = ["audit", str(parts / "recs.csv"), "--train", str(parts / "train.csv"), "-k", str(K), "-o", "kept"]
    refused_without_a_trace(tmp_path, [*given, *arguments], *words)


def test_a_filled_folder_is_not_touched(parts: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine.txt").write_text("mine")
    given = ["audit", str(parts / "recs.csv"), "--train", str(parts / "train.csv"), "-o", "kept"]
    refused_without_a_trace(tmp_path, given, "kept is not empty")


def test_a_page_needs_the_template_engine_and_a_folder_does_not(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    given = ["audit", str(parts / "recs.csv"), "--train", str(parts / "train.csv")]
    refused_without_a_trace(tmp_path, [*given, "--html", "report.html"], "jinja2", "caged-rec[report]")
    outcome = caged(*given, "-o", tmp_path / "kept")
    assert outcome.code == 0, outcome.err
    assert "jinja2 is not installed" in outcome.err
    assert (tmp_path / "kept" / "metrics.json").exists()


# ---------------------------------------------------------------- gates


def test_gates_decide_the_exit_code_and_say_why(parts: Path, tmp_path: Path) -> None:
    passed = audit(parts, "--fail-if", f"tail_share@{K}>0.9")
    assert passed.code == 0
    assert f"gate passed: tail_share@{K}>0.9: tail_share@{K} is" in passed.err
    both = ("--fail-if", f"tail_share@{K}<0.9", "--fail-if", f"gini@{K} > 0", "--html", tmp_path / "report.html")
    failed = audit(parts, *both)
    assert failed.code == 1
    assert f"recall@{K}" in failed.out  # the numbers come all the same, and the page
    assert (tmp_path / "report.html").exists()
    assert len(re.findall(r"^gate FAILED: ", failed.err, re.MULTILINE)) == 2
    content = json.loads(audit(parts, "--fail-if", f"tail_share@{K}<0.9", "--json").out)
    assert [gate["failed"] for gate in content["gates"]] == [True]


def test_a_gate_about_what_was_not_given_is_bad_input(parts: Path) -> None:
    """It would fail whatever the lists are, and look like a verdict on them."""
    refused(audit(parts, "--fail-if", f"recall@{K}<0.01", test=False), f"recall@{K} needs a test part (--test FILE)")
    refused(audit(parts, "--fail-if", "shown_auc<0.6"), "shown_auc needs what was shown at random", "--test-negative")


def test_a_gate_on_an_undefined_value_fails(parts: Path, tmp_path: Path) -> None:
    (popular, _), *_ = Counter(row[1] for row in rows_of(parts / "train.csv")).most_common(1)
    others = [row[:2] for row in rows_of(parts / "test.csv") if row[1] == popular]
    test = write_log(tmp_path / "popular.csv", others)  # type: ignore[arg-type]
    gate = ("--fail-if", f"recall@{K}/niche<0.01")
    outcome = caged("audit", parts / "recs.csv", "--train", parts / "train.csv", "--test", test, "-k", str(K), *gate)
    assert outcome.code == 1
    assert f"recall@{K}/niche is undefined, so the gate cannot be passed" in outcome.err


def test_what_was_measured_is_written_where_nothing_says_what_is_sure(parts: Path, tmp_path: Path) -> None:
    """Lists that find nothing of anybody: no user differs from another, and so there is no interval."""
    wanted = {row[1] for row in rows_of(parts / "test.csv")}
    useless = sorted({row[1] for row in rows_of(parts / "train.csv")} - wanted)
    rows = [row for row in rows_of(parts / "recs.csv") if row[2] == "1"]
    lists = _write_lists(tmp_path / "bad.csv", [(row[0], useless[0], "1") for row in rows])
    outcome = audit(parts, "--fail-if", f"recall@{K}<0.1 surely", "-o", tmp_path / "out", recs=lists)
    assert outcome.code == 2
    assert "hardly any users differ in it" in outcome.err
    assert (tmp_path / "out" / "metrics.json").exists()


def test_gates_against_a_base(parts: Path, tmp_path: Path) -> None:
    assert audit(parts, "-o", tmp_path / "base").code == 0
    worse = _write_lists(tmp_path / "worse.csv", [row for row in rows_of(parts / "recs.csv") if row[2] != "1"])
    gate = ("--against", tmp_path / "base", "--fail-if", f"recall@{K} drops 1%")
    assert audit(parts, *gate).code == 0
    failed = audit(parts, *gate, recs=worse)
    assert failed.code == 1
    assert "allowed is a drop of at most 1%" in failed.err
    half = [row[:2] for row in rows_of(parts / "test.csv")[::2]]
    test = write_log(tmp_path / "half.csv", half)  # type: ignore[arg-type]
    other = caged("audit", worse, "--train", parts / "train.csv", "--test", test, "-k", str(K), *gate)
    assert other.code == 2
    assert "another test part" in other.error


def test_a_run_is_a_base_too(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", "--no-report", method="mostpop")
    assert caged("data", "split", log_csv, "-o", tmp_path / "split").code == 0
    given = ("--train", tmp_path / "split", "--against", tmp_path / "run", "--fail-if", "recall@20 drops 0%")
    outcome = caged("audit", tmp_path / "run" / "recommendations.parquet", *given)
    assert outcome.code == 0, outcome.err


# ---------------------------------------------------------------- pages of our own runs


def test_train_and_evaluate_write_the_page_of_their_run(log_csv: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(log_csv, run, "--set", "train.validation=yes", method="mostpop")
    page = (run / "report.html").read_text()
    check_page(page)
    assert "Popularity audit: Most popular on log" in page
    assert "Protocol: honest." in page
    assert "caged train --data" in page
    before = contents(run)
    assert caged("evaluate", run, "-k", "5,10", "--html", tmp_path / "five.html").code == 0
    assert "The first 5 recommendations" in (tmp_path / "five.html").read_text()
    assert caged("evaluate", run, "--part", "valid", "--html", tmp_path / "valid.html").code == 0
    check_page((tmp_path / "valid.html").read_text())
    assert caged("evaluate", run, "--html", tmp_path / "no" / "where.html").code == 2
    assert contents(run) == before


def test_the_numbers_of_a_run_are_those_of_its_audit(log_csv: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(log_csv, run, "--no-report", method="mostpop")
    assert not (run / "report.html").exists()
    assert caged("data", "split", log_csv, "-o", tmp_path / "split").code == 0
    lists = run / "recommendations.parquet"
    found = numbers(caged("audit", lists, "--train", tmp_path / "split", "--json"))["metrics"]
    stored = json.loads((run / "metrics.json").read_text())["metrics"]
    assert {key: found[key] for key in stored} == pytest.approx(stored)


def test_a_run_goes_on_without_the_template_engine(
    log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    outcome = train(log_csv, tmp_path / "run", method="mostpop")
    assert "note: no report.html, because jinja2 is not installed" in outcome.err
    assert not (tmp_path / "run" / "report.html").exists()
    assert (tmp_path / "run" / "metrics.json").exists()


# ---------------------------------------------------------------- gates on input that is wrong


@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("gate", [f"recall@{K} < 0", f"gini@{K} < 0"])
def test_no_gate_passes_on_lists_whose_items_train_does_not_know(
    parts: Path, tmp_path: Path, share: float, gate: str
) -> None:
    rows = rows_of(parts / "recs.csv")
    known = int(share * len(rows))
    foreign = [row if n < known else (row[0], f"x{row[1]}", row[2]) for n, row in enumerate(rows)]
    recs = _write_lists(tmp_path / "foreign.csv", foreign)
    assert audit(parts, recs=recs).code == 0  # the notes say it
    outcome = audit(parts, "--fail-if", gate, "-o", tmp_path / "kept", recs=recs)
    assert outcome.code == 2
    assert "nothing was measured that a gate could judge" in outcome.err
    assert not (tmp_path / "kept").exists()


def test_a_base_alone_asks_for_input_that_can_be_compared(parts: Path, tmp_path: Path) -> None:
    audit(parts, "-o", tmp_path / "base")
    recs = _write_lists(tmp_path / "foreign.csv", [(u, f"x{i}", r) for u, i, r in rows_of(parts / "recs.csv")])
    assert audit(parts, "--against", tmp_path / "base", recs=recs).code == 2
    assert audit(parts, "--against", tmp_path / "base").code == 0


# ---------------------------------------------------------------- lists as they come


def test_everything_in_folders_of_part_files_as_spark_writes_it(parts: Path, tmp_path: Path) -> None:
    entry = pa.struct([("product", pa.string()), ("rating", pa.float32())])
    lists: dict[str, list[dict[str, object]]] = {}
    for user, item, rank in rows_of(parts / "recs.csv"):
        lists.setdefault(user, []).append({"product": item, "rating": 1 / int(rank)})
    spark = pa.table({"client": list(lists), "recommendations": pa.array(list(lists.values()), pa.list_(entry))})
    logs = {
        name: pa.table(dict(zip(("client", "product"), zip(*rows_of(parts / f"{name}.csv"), strict=True), strict=True)))
        for name in ("train", "test")
    }
    for name, table in {"recs": spark, **logs}.items():
        (tmp_path / name).mkdir()
        for number, start in enumerate(range(0, table.num_rows, 25)):
            pq.write_table(table.slice(start, 25), tmp_path / name / f"part-{number:05}.parquet")
        (tmp_path / name / "_SUCCESS").touch()
    named = ["--user-column", "client", "--item-column", "product", "-k", str(K), "--json"]
    found = caged("audit", tmp_path / "recs", "--train", tmp_path / "train", "--test", tmp_path / "test", *named)
    assert numbers(found)["metrics"] == numbers(audit(parts, "--json"))["metrics"]


def test_columns_of_the_lists_are_named_apart_from_those_of_the_logs(parts: Path, tmp_path: Path) -> None:
    recs = _write_lists(tmp_path / "recs.csv", rows_of(parts / "recs.csv"), "who,what,place")
    named = ["--list-user-column", "who", "--list-item-column", "what", "--rank-column", "place"]
    assert numbers(audit(parts, "--json", *named, recs=recs))["metrics"] == numbers(audit(parts, "--json"))["metrics"]
    outcome = audit(parts, "--list-user-column", "who", "--list-item-column", "what", recs=recs)
    assert outcome.code == 2
    assert "--rank-column" in outcome.err


# ---------------------------------------------------------------- identifiers as text


def test_odd_ids_are_refused_by_line_or_names(parts: Path, tmp_path: Path) -> None:
    rows = [*rows_of(parts / "recs.csv"), ("NaN", "i1", "1")]
    recs = _write_lists(tmp_path / "odd.csv", rows)
    plain = ["audit", str(recs), "--train", str(parts / "train.csv"), "--test", str(parts / "test.csv")]
    line = len(rows) + 1
    refused_without_a_trace(
        tmp_path, plain, "'user_id' is 'NaN'", f"data row {len(rows)}, line {line} of", "--ids text"
    )
    named = json.loads(caged(*plain, "--ids", "text", "--json").out)
    assert named["counts"]["users_unknown"] == 1
    refused_without_a_trace(tmp_path, [*plain, "--ids", "words"], "unknown way to read ids 'words'")


def test_ids_as_text_make_integers_and_text_match(parts: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"user_id": [1, 2, 3], "item_id": [1, 2, 3]}), tmp_path / "train.parquet")
    (tmp_path / "test.csv").write_text("user_id,item_id\n1,2\nx,3\n")
    recs = _write_lists(tmp_path / "recs.csv", [("1", "2", "1"), ("2", "3", "1")])
    plain = ["audit", str(recs), "--train", str(tmp_path / "train.parquet"), "--test", str(tmp_path / "test.csv")]
    refused_without_a_trace(tmp_path, [*plain, "-k", "1"], "holds text (such as 'x') where train has integers")
    outcome = caged(*plain, "-k", "1", "--ids", "text", "--json")
    assert json.loads(outcome.out)["metrics"]["recall@1"] == 0.5


def test_times_in_several_units_are_a_note(parts: Path, tmp_path: Path) -> None:
    log = tmp_path / "train.csv"
    rows = rows_of(parts / "train.csv")
    times = [1_700_000_000, 1_700_000_000_000]
    lines = [f"{row[0]},{row[1]},{times[place % 2]}" for place, row in enumerate(rows)]
    log.write_text("\n".join(["user_id,item_id,timestamp", *lines]))
    outcome = caged("audit", parts / "recs.csv", "--train", log, "-k", "5")
    assert "note: train: column 'timestamp' mixes units" in outcome.err


# ---------------------------------------------------------------- the basis of a gate


def test_the_same_lists_with_another_catalogue_fail_no_gate(parts: Path, tmp_path: Path) -> None:
    assert audit(parts, "-o", tmp_path / "base").code == 0
    more = [f"i{number:02}" for number in range(90)]
    (tmp_path / "items.csv").write_text("\n".join(["item_id", *more]) + "\n")
    against = ("--items", tmp_path / "items.csv", "--against", tmp_path / "base")
    refused = audit(parts, *against, "--fail-if", f"coverage@{K} drops 1%")
    assert refused.code == 2
    assert "the catalogues differ" in refused.error
    assert "--items" in refused.error
    passed = audit(parts, *against, "--fail-if", f"recall@{K} drops 1%")
    assert passed.code == 0
    assert "the catalogues differ" in passed.err


def test_skipping_users_hides_no_drop(parts: Path, tmp_path: Path) -> None:
    assert audit(parts, "-o", tmp_path / "base").code == 0
    good = {row[0] for row in rows_of(parts / "recs.csv")[:50]}
    fewer = _write_lists(tmp_path / "fewer.csv", [row for row in rows_of(parts / "recs.csv") if row[0] in good])
    gate = ("--against", tmp_path / "base", "--fail-if", f"recall@{K} drops 1%")
    refused = audit(parts, *gate, "--missing", "skip", recs=fewer)
    assert refused.code == 2
    assert "--missing" in refused.error


# ---------------------------------------------------------------- certainty


def test_a_sure_gate_lets_noise_pass_and_a_drop_fail(parts: Path, tmp_path: Path) -> None:
    assert audit(parts, "-o", tmp_path / "base").code == 0
    rows = rows_of(parts / "recs.csv")
    hits = {row[:2] for row in rows_of(parts / "test.csv")} & {row[:2] for row in rows}
    noisy = _write_lists(tmp_path / "noisy.csv", [row for row in rows if row[:2] not in sorted(hits)[:1]])
    worse = _write_lists(tmp_path / "worse.csv", [row for row in rows if row[:2] not in sorted(hits)[::2]])
    for gate, codes in ((f"recall@{K} drops 0.1%", (1, 1)), (f"recall@{K} drops 0.1% surely", (0, 1))):
        asked = ("--against", tmp_path / "base", "--fail-if", gate, "--json")
        outcomes = [audit(parts, *asked, recs=recs) for recs in (noisy, worse)]
        assert tuple(outcome.code for outcome in outcomes) == codes
    low, high = json.loads(outcomes[1].out)["gates"][0]["interval"]
    assert low < high < 0


def test_certainty_that_cannot_be_had_is_refused(parts: Path, tmp_path: Path) -> None:
    assert audit(parts, "-o", tmp_path / "base").code == 0
    against = ("--against", tmp_path / "base")
    assert "gini has no interval" in audit(parts, *against, "--fail-if", f"gini@{K} rises 1% surely").error
    assert audit(parts, *against, "--fail-if", f"pop_rsp@{K} rises 1% surely").code == 0
    stored = read_sealed_json(tmp_path / "base" / "metrics.json")
    write_sealed_json(tmp_path / "base" / "metrics.json", {**stored, "intervals": {}})
    (tmp_path / "base" / "per_user.parquet").unlink()
    refused = audit(parts, *against, "--fail-if", f"recall@{K} drops 1% surely")
    assert refused.code == 2
    assert "stores neither an interval of" in refused.error


@pytest.mark.parametrize("name", ["recs.csv", "train.csv", "test.csv", "valid.csv", "items.csv", "base/metrics.json"])
def test_the_page_replaces_nothing_that_is_read(parts: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(parts, tmp_path, dirs_exist_ok=True)
    assert audit(parts, "-o", tmp_path / "base").code == 0
    (tmp_path / "valid.csv").touch()
    (tmp_path / "items.csv").write_text("item_id,genre\na,b\n")
    read = ("--test", "test.csv", "--valid", "valid.csv", "--item-groups", "items.csv:genre", "--against", "base")
    arguments = ["audit", "recs.csv", "--train", "train.csv", *read, "--html", f"./{name}"]
    refused_without_a_trace(tmp_path, arguments, f"cannot write --html {name}: the same command reads")


@pytest.mark.parametrize("option", ["missing", "score_column", "list_user_column"])
@pytest.mark.parametrize("value", [3, ["a"]])
def test_options_of_a_wrong_type_are_one_sentence_in_python(parts: Path, option: str, value: Any) -> None:
    with pytest.raises(CagedError, match=re.escape(f"'{value}'")):
        package.audit(str(parts / "recs.csv"), str(parts / "train.csv"), str(parts / "test.csv"), **{option: value})
