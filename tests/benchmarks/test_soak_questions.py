"""What counts as a right answer of the server, and what does not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from benchmarks.soak_questions import Question, Ranking, Wanted, post, title

WANTED = Wanted(items=[7, 3, 9, 4], scores=[2.0, 1.0, 1.0 + 1e-7, 0.5], k=3)


def listed(*items: tuple[int, float]) -> list[dict[str, Any]]:
    return [{"item_id": item, "score": score, "title": title(item)} for item, score in items]


def test_a_list_is_right_in_its_order_but_for_rounding() -> None:
    assert WANTED.is_met_by(listed((7, 2.0), (3, 1.0), (9, 1.0)))
    assert WANTED.is_met_by(listed((7, 2.0000001), (9, 1.0), (3, 1.0)))  # as good as a tie


def test_any_other_list_is_wrong() -> None:
    right = listed((7, 2.0), (3, 1.0), (9, 1.0))
    for wrong in (
        right[:2],
        listed((3, 2.0), (7, 1.0), (9, 1.0)),
        listed((7, 2.0), (3, 1.0), (3, 1.0)),
        listed((7, 2.0), (3, 1.0), (4, 1.0)),
        listed((7, 2.0), (3, 1.0), (8, 1.0)),
        listed((7, 2.1), (3, 1.0), (9, 1.0)),
        [*right[:2], {**right[2], "title": "another"}],
    ):
        assert not WANTED.is_met_by(wrong)


def test_an_answer_is_held_against_the_version_that_it_names() -> None:
    other = Wanted([1], [0.1], 1)
    question = Question("batch", b"", 200, {"aa": [WANTED, other], "bb": [other, other]})
    lists = [{"items": listed((7, 2.0), (3, 1.0), (9, 1.0))}, {"items": listed((1, 0.1))}]
    assert question.is_right(json.dumps({"version": "aa", "answers": lists}).encode())
    assert not question.is_right(json.dumps({"version": "bb", "answers": lists}).encode())
    assert not question.is_right(json.dumps({"version": "cc", "answers": lists}).encode())
    assert not question.is_right(json.dumps({"version": "aa", "answers": lists[:1]}).encode())


def test_what_is_not_allowed_leaves_the_ranking() -> None:
    ranking = Ranking(np.array([2, 0, 1]), np.array([3.0, 2.0, 1.0]))
    kept = ranking.kept(np.array([True, True, False]), 5)
    assert (kept.items, kept.scores, kept.k) == ([0, 1], [2.0, 1.0], 2)
    assert ranking.kept(None, 1).k == 1


def test_a_request_says_how_long_it_is() -> None:
    head, _, body = post("/recommend", {"k": 1}).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /recommend HTTP/1.1\r\n")
    assert head.endswith(b"Content-Length: %d" % len(body))
