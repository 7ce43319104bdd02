from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from caged.errors import ConfigError
from caged.evaluation.basis import Basis
from caged.evaluation.bootstrap import Interval
from caged.products.audit.gates import Base, Gate, Verdict, check_gates, judge, parse_gate
from caged.products.audit.result import AuditResult
from tests.products.audit.audits import made_up

METRICS = {"recall@20": 0.099, "tail_share@20": 0.25, "popularity_lift@20": -0.5, "pru@20": math.nan, "hit@20": 0.0}


def base(**changed: float) -> Base:
    values = {"recall@20": 0.1, "tail_share@20": 0.25, "popularity_lift@20": -0.4, "pru@20": 0.1, "hit@20": 0.0}
    named = {f"{name}@20": value for name, value in changed.items()}
    return Base(Path("audits/old"), {**values, **named}, {"train": "a" * 64, "test": "b" * 64})


def judged(text: str, against: Base | None = None) -> Verdict:
    (verdict,) = judge([parse_gate(text)], METRICS, against)
    return verdict


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tail_share@20<0.2", ("tail_share@20", "<", 0.2)),
        (" tail_share@20 <= 20% ", ("tail_share@20", "<=", 0.2)),
        ("recall@20/niche > 1e-3", ("recall@20/niche", ">", 1e-3)),
        ("popularity_lift@20/niche-taste>=-0.5", ("popularity_lift@20/niche-taste", ">=", -0.5)),
        ("recall@20 drops 1%", ("recall@20", "drops", 0.01)),
        ("gini@20 rises by 2.5 %", ("gini@20", "rises", 0.025)),
        ("recall@20/niche drops 5% surely", ("recall@20/niche", "drops", 0.05)),
        ("tail_share@20<0.2 surely", ("tail_share@20", "<", 0.2)),
        ("recall@20/genre=Film Noir<=0.2", ("recall@20/genre=Film%20Noir", "<=", 0.2)),
        ("recall@20/user:age=18-24 drops 5%", ("recall@20/user:age=18-24", "drops", 0.05)),
        ("reo@20/genre>0.5", ("reo@20/genre", ">", 0.5)),
    ],
)
def test_what_can_be_said(text: str, expected: tuple[str, str, float]) -> None:
    gate = parse_gate(text)
    assert (gate.key, gate.sign) == expected[:2]
    assert gate.bound == pytest.approx(expected[2])
    assert gate.surely == ("surely" in text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tail_share@20", ("cannot be read", "drops NUMBER%")),
        ("tail_share@20 == 0.2", ("cannot be read",)),
        ("tail_share@20 < low", ("'low'", "a number")),
        ("tail_share@20 < nan", ("'nan'", "a number")),
        ("tailshare@20 < 0.2", ("unknown metric 'tailshare'", "did you mean 'tail_share'?")),
        ("recal@20 drops 1%", ("unknown metric 'recal'", "did you mean 'recall'?")),
        ("recall<0.2", ("needs a cut-off", "recall@20")),
        ("gini@20/niche<0.2", ("does not exist", "gini@20")),
        ("recall@20 drops 1", ("needs a percentage", "drops 1%")),
        ("recall@20 drops -1%", ("negative", "at least 0")),
        ("recall@20 drops 1% maybe", ("cannot be read", "'surely'")),
        ("recall@20 drops 1%surely", ("cannot be read",)),
    ],
)
def test_what_cannot_be_said(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as error:
        parse_gate(text)
    assert all(word in str(error.value) for word in words), error.value


def test_gates_that_cannot_be_judged_are_refused_before_anything_is_measured() -> None:
    check_gates([parse_gate("recall@20 drops 1%"), parse_gate("gini@20<1")], [20], base())
    for text, ks, against, words in (
        ("recall@10<0.1", [20], None, "k = 10, but the audit measures k = 20"),
        ("recall@20 drops 1%", [20], None, "--against DIR"),
        ("gini@20 rises 1%", [20], base(), "audits/old has no gini@20"),
        ("gini@20 < 0.1 surely", [20], None, "gini has no interval"),
        ("ndcg_hits100@20 < 1", [20], None, "an audit does not measure it"),
    ):
        with pytest.raises(ConfigError, match=words):
            check_gates([parse_gate(text)], ks, against)


# ---------------------------------------------------------------- judging


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("tail_share@20<0.2", False),
        ("tail_share@20<0.25", False),
        ("tail_share@20<=0.25", True),
        ("tail_share@20>=0.25", True),
        ("tail_share@20>0.25", False),
        ("tail_share@20>20%", True),
        ("popularity_lift@20<0", True),
    ],
)
def test_a_bound_is_what_it_says(text: str, failed: bool) -> None:
    assert judged(text).failed is failed


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("recall@20 drops 1%", False),  # exactly 1%, whatever the rounding
        ("recall@20 drops 0.9%", True),
        ("recall@20 rises 0%", False),
        ("tail_share@20 drops 0%", False),
        ("tail_share@20 rises 0%", False),
        ("popularity_lift@20 drops 24%", True),  # from -0.4 to -0.5: lower by a quarter of 0.4
        ("popularity_lift@20 drops 26%", False),
        ("popularity_lift@20 rises 0%", False),
    ],
)
def test_a_change_is_relative_to_the_base(text: str, failed: bool) -> None:
    assert judged(text, base()).failed is failed


def test_reasons_can_be_read() -> None:
    assert judged("tail_share@20<0.3").reason == "tail_share@20 is 0.25, < 0.3"
    assert judged("tail_share@20<0.2").reason == "tail_share@20 is 0.25, >= 0.2"
    assert judged("recall@20 drops 0.5%", base()).reason == (
        "recall@20 is 0.099, in the base 0.1: a change of -1.00%; allowed is a drop of at most 0.5%"
    )


@pytest.mark.parametrize(
    ("text", "against", "words"),
    [
        ("pru@20<0.5", None, "pru@20 is undefined"),
        ("pru@20>=0.5", None, "pru@20 is undefined"),
        ("map@20>=0.5", None, "map@20 is undefined"),
        ("pru@20 drops 1%", base(), "undefined here"),
        ("recall@20 drops 1%", base(recall=math.nan), "undefined in the base"),
        ("hit@20 drops 1%", base(), "0 in the base"),
    ],
)
def test_undefined_values_fail_and_say_so(text: str, against: Base | None, words: str) -> None:
    verdict = judged(text, against)
    assert verdict.failed
    assert words in verdict.reason
    assert "cannot be passed" in verdict.reason


def test_another_test_part_is_no_base() -> None:
    def measured_on(**fingerprints: str) -> AuditResult:
        return replace(made_up(), fingerprints=fingerprints)

    both = {"train": "a" * 64, "test": "b" * 64}
    for given in (both, {"train": "a" * 64}):
        (note,) = base().check_comparable(measured_on(**given), ())
        assert "does not say with which catalogue" in note
    for part in ("train", "test"):
        with pytest.raises(ConfigError, match=f"another {part} part"):
            base().check_comparable(measured_on(**{**both, part: "c" * 64}), ())


def test_another_basis_is_refused_where_a_gate_depends_on_it() -> None:
    here = Basis("items", 10, "popular", "zero", 0)
    result = replace(made_up(), fingerprints={}, basis=here)

    def notes(other: Basis, gate: str) -> list[str]:
        return replace(base(), basis=other).check_comparable(result, [parse_gate(gate)])

    assert notes(here, "coverage@20 drops 1%") == []
    for other, gate, words in (
        (replace(here, catalogue="others", items=7), "coverage@20 drops 1%", "catalogues differ .7 items and 10"),
        (replace(here, missing="skip", left_out=4), "recall@20 drops 1%", "4 and 0 of them"),
        (replace(here, groups="others"), "recall@20/niche drops 1%", "groups of popular and niche items differ"),
    ):
        with pytest.raises(ConfigError, match=words):
            notes(other, gate)
        (note,) = notes(other, "arp@20 rises 1%")
        assert re.search(words, note)
        assert notes(other, "coverage@20 < 0.1") == [note]  # not relative to the base


def test_gates_are_values() -> None:
    assert parse_gate("recall@20 < 0.1") == Gate("recall@20 < 0.1", "recall@20", "<", 0.1)


# ---------------------------------------------------------------- certainty


@pytest.mark.parametrize(
    ("text", "low", "high", "failed"),
    [
        ("recall@20 drops 0.5% surely", -0.002, -0.0006, True),  # allowed is 0.0005
        ("recall@20 drops 0.5% surely", -0.002, -0.0004, False),
        ("recall@20 drops 0.5%", -0.002, -0.0004, True),
        ("recall@20 drops 5% surely", -0.002, -0.0006, False),  # not even by its value
        ("tail_share@20 < 0.3 surely", 0.24, 0.26, True),
        ("tail_share@20 < 0.3 surely", 0.2, 0.31, False),
        ("tail_share@20 >= 0.2 surely", 0.21, 0.29, True),
        ("tail_share@20 >= 0.2 surely", 0.19, 0.29, False),
    ],
)
def test_a_sure_gate_fails_where_the_whole_interval_lies_beyond(
    text: str, low: float, high: float, failed: bool
) -> None:
    interval = Interval(low, high, "bootstrap")
    (verdict,) = judge([parse_gate(text)], METRICS, base(), interval_of=lambda _: interval)
    assert verdict.failed == failed
    if verdict.interval is not None:
        assert f"{'lies' if failed else 'does not lie'} beyond" in verdict.reason


def test_a_sure_gate_needs_a_value_and_an_interval() -> None:
    (verdict,) = judge([parse_gate("pru@20 < 0.1 surely")], METRICS)
    assert verdict.failed
    with pytest.raises(ConfigError, match="there is no interval of tail_share@20"):
        judge([parse_gate("tail_share@20 < 0.3 surely")], METRICS)
