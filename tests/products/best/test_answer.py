"""The words of the answer."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from caged.data import IdMap
from caged.products.best.answer import (
    answer_json,
    answer_sentences,
    answer_tables,
    next_commands,
    time_sentence,
    typable,
)
from caged.products.best.judgement import Value
from caged.products.best.page import answer_html
from tests.products.best.answers import NICHE, judged, made

FOLDER = Path("best of") / "all"


def test_the_sentences_say_what_to_serve_and_by_how_much_it_is_better() -> None:
    serve, accuracy, niche, model = answer_sentences(made(FOLDER))
    assert serve == (
        "Serve Softmax adjusted (learning_rate=0.005, strength 0.1): on validation it has the highest recall@20/niche "
        "of all whose recall@20 is within 1% of the best."
    )
    assert "34% [33%, 35%]; LightGCN at its defaults 32% (+2.00 pp [+0.00, +4.00]); Most popular 17%" in accuracy
    assert "they find 7% [6%, 8%]; LightGCN at its defaults 3%" in niche
    assert "trained for 40 epochs on the whole log (100,000 pairs)" in model


def test_who_is_alone_within_the_share_is_said_to_be() -> None:
    answer = made(FOLDER)
    candidates = tuple(replace(one, within=one.strength is not None) for one in answer.choice.candidates)
    alone = replace(answer, choice=replace(answer.choice, candidates=candidates))
    assert "nothing else came within 1% of its recall@20" in answer_sentences(alone)[0]


def test_lightgcn_at_its_defaults_may_be_the_best() -> None:
    answer = made(FOLDER)
    base = answer.choice.candidates[2]
    won = replace(
        answer,
        choice=replace(answer.choice, chosen=base),
        rows=(judged("chosen", "LightGCN", 0.34, 0.07), answer.rows[2]),
    )
    assert "(this is LightGCN at its defaults)" in answer_sentences(won)[1]


def test_a_test_without_niche_items_says_so() -> None:
    answer = made(FOLDER)
    nothing = replace(answer.rows[0], values={**answer.rows[0].values, NICHE: Value(math.nan, None)})
    without = replace(answer, rows=(nothing, *answer.rows[1:]))
    assert "no niche item" in answer_sentences(without)[2]
    assert "no niche item" in answer_html(without)


def test_the_tables_have_a_row_per_model_and_per_method() -> None:
    tested, methods = answer_tables(made(FOLDER))
    assert [row[0] for row in tested.rows] == ["Softmax adjusted", "LightGCN at its defaults", "Most popular"]
    assert tested.rows[1][2] == "+2.00 pp [+0.00, +4.00]"
    assert [row[0] for row in methods.rows] == ["Softmax adjusted", "Softmax", "LightGCN", "Most popular"]
    assert [row[3] for row in methods.rows] == ["yes", "yes", "no", "no"]
    assert "4 settings each, at most 300 epochs" in methods.title


def test_commands_are_quoted_for_a_shell() -> None:
    commands = dict(next_commands(made(FOLDER)))
    assert commands["See a list"] == "caged recommend 'best of/all/model' --users ann -k 10"
    assert "'best of/all/artefact'" in commands["Serve it over HTTP"]
    everybody = next_commands(replace(made(FOLDER), example_user=None))[0][1]
    assert everybody.endswith("--all-users -o recs.csv")


@pytest.mark.parametrize(
    ("ids", "found"), [(["-x", "a,b", " c", "Zoë O'Hara"], "Zoë O'Hara"), (["a,b"], None), ([7, 8], "7")]
)
def test_the_example_is_a_user_whose_id_can_be_typed(ids: list[Any], found: str | None) -> None:
    assert typable(IdMap.of(ids)) == found


def test_the_page_says_what_the_terminal_says() -> None:
    page = answer_html(made(FOLDER))
    for words in (
        "Serve Softmax adjusted.",
        "The best model for orders",
        "audit-before.html",
        "A note.",
        "--users ann",
    ):
        assert words in page
    assert answer_sentences(made(FOLDER))[1].partition("; ")[0] in page


def test_everything_is_in_the_json() -> None:
    told = answer_json(made(FOLDER))
    assert told["chosen"]["name"] == "softmax adjusted"
    assert told["seconds"]["total"] == 420.0
    assert told["next"][0].startswith("caged recommend")
    assert time_sentence(made(FOLDER)) == "7.0 of 10 minutes: Most popular 0 s, LightGCN 100 s, Softmax 200 s."
