"""What a rank sends in a step, by the formulas and as it was counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caged.runs.planning.sent import sent_in_a_step

COUNTED = Path(__file__).parents[3] / "benchmarks" / "results" / "columns_cpu2.json"


def test_a_step_of_bpr_sends_two_scores_per_triple():
    assert sent_in_a_step("lightgcn", 2048, 64, 1) == 0
    assert sent_in_a_step("lightgcn", 2048, 64, 2) == 4 * (2 * 2048 + 1)
    assert sent_in_a_step("lightgcn", 2048, 64, 4) == 1.5 * 4 * (2 * 2048 + 1)


def test_a_step_of_the_softmax_sends_the_own_columns_of_two_rows():
    assert sent_in_a_step("softmax", 2048, 64, 4) == 3 * 4 * (2 * 2048 * 16 + 1)
    assert sent_in_a_step("softmax", 2048, 65, 4) == 3 * 4 * (2 * 2048 * 17 + 1)  # as the widest rank


def test_it_is_what_was_counted():
    lines = json.loads(COUNTED.read_text())["rows"]
    assert {line["ranks"] for line in lines} == {1, 2, 4}
    for line in lines:
        expected = sent_in_a_step(line["method"], 2048, 64, line["ranks"])
        assert line["sent"] == pytest.approx(expected, abs=1), line
