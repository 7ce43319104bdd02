"""`docs/metrics.md` names every metric, and every toy value in it is what the program computes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from caged.evaluation import bias, exposure, ranking
from caged.evaluation.floors import MOST_POPULAR, RANDOM_CHOICE
from caged.evaluation.measure import measure
from caged.evaluation.metrics import METRICS, keys_of_shown, metric_keys
from caged.evaluation.significance import holm, paired_interval, paired_test, welch_test
from caged.page.definitions import BETTER
from tests.evaluation.shown_worlds import shown_toy
from tests.evaluation.worlds import TOY, toy_chosen, toy_world
from tools.metrics_doc import main, updated

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
K = 3
HALF_OF_THE_LAST_DIGIT = 5.001e-7


def rows_with_head(*head: str) -> Iterator[list[str]]:
    """The cells of all tables that begin with these columns."""
    inside = False
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[: len(head)] == list(head):
            inside = True
        elif not cells:
            inside = False
        elif inside and not set(line) <= set("|-: "):
            yield cells


def numbers(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d{6}", cell)]


def documented() -> Iterator[tuple[str, float, list[str]]]:
    """(key at K, toy value, cells of its row)."""
    for cells in rows_with_head("key"):
        keys = [key.replace("@k", f"@{K}") for key in re.findall(r"`([^`]+)`", cells[0])]
        values = numbers(cells[-1])
        assert len(keys) == len(values) > 0, cells
        yield from ((key, value, cells) for key, value in zip(keys, values, strict=True))


def test_the_table_of_all_metrics_is_up_to_date():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert updated(text, Path()) == text
    assert [cells[0] for cells in rows_with_head("metric")] == [
        f"`{name}@k`" if metric.has_k else f"`{name}`" for name, metric in METRICS.items()
    ]


def test_the_command_rewrites_the_table_and_nothing_else(tmp_path):
    text = DOCUMENT.read_text(encoding="utf-8")
    copy = tmp_path / "metrics.md"
    copy.write_text(text.replace("| `recall@k` | Share", "| `recall@k` | Chair", 1), encoding="utf-8")
    main([str(copy)])
    assert copy.read_text(encoding="utf-8") == text


def test_every_key_is_there_once():
    assert sorted(key for key, _, _ in documented()) == sorted(metric_keys((K,), toy_chosen().names))


def test_every_metric_of_the_program_is_named():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert all(f"`{name}{'@k' if metric.has_k else ''}" in text for name, metric in METRICS.items())


def test_the_toy_values_are_what_the_program_computes():
    world = toy_world()
    computed = measure(world.lists, world.grouped(toy_chosen()), ks=(K,)).metrics
    for key, value, _ in documented():
        assert computed[key] == pytest.approx(value, abs=HALF_OF_THE_LAST_DIGIT, rel=0), key


def test_the_toy_of_what_chance_showed_is_what_the_program_computes():
    """Also that it is the toy of the tests, whose scores and training users stand in words above the table."""
    world = shown_toy()
    report = measure(world.lists, world.reference, metrics=keys_of_shown([2]), scores=world.scores)
    told = list(rows_with_head("shown key"))
    keys = [re.findall(r"`([^`]+)`", cells[0])[0].replace("@k", "@2") for cells in told]
    assert sorted(keys) == sorted(report.metrics)
    for key, cells in zip(keys, told, strict=True):
        values = numbers(" ".join(cells[-2:]))
        floors = [report.floors[name][key] for name in (MOST_POPULAR, RANDOM_CHOICE)]
        assert values == pytest.approx([report.metrics[key], *floors], abs=HALF_OF_THE_LAST_DIGIT, rel=0), key


def test_directions_are_those_of_the_program():
    checked = 0
    for key, _, cells in documented():
        direction = METRICS[key.partition("@")[0]].direction
        if len(cells) == 6:  # key, sentence, formula, range, better, toy
            assert cells[4] == BETTER[direction], key
            checked += 1
        else:
            assert direction == "up", key  # said above the table of accuracy
    assert checked > 20


def test_every_metric_is_said_in_one_sentence():
    for _, _, cells in documented():
        assert re.fullmatch(r"[A-Z][^.]*\.", cells[1].replace("NDCG", "N").replace("UPD", "U")), cells[1]


def test_the_toy_lists_are_those_of_the_tests():
    stored = TOY["toy"]
    for user, *parts in rows_with_head("user"):
        for name, cell in zip(("train", "valid", "test", "lists"), parts, strict=True):
            expected = stored[name].get(user.removeprefix("u"), [])
            assert [int(item) for item in re.findall(r"\d+", cell)] == expected, (user, name)


def test_the_statistics_are_what_the_program_computes():
    given = TOY["statistics"]
    a, b = np.array(given["a"]), np.array(given["b"])
    paired, interval = paired_test(a, b), paired_interval(a, b)
    seeds = welch_test(given["seeds"]["a"], given["seeds"]["b"])
    assert interval is not None
    computed = {
        "mean difference": paired.mean_difference,
        "t": paired.t,
        "p of t": paired.p_t,
        "W+": paired.w_plus,
        "W-": paired.w_minus,
        "z": paired.z,
        "p of Wilcoxon": paired.p_wilcoxon,
        "d_z": paired.d_z,
        "rank-biserial": paired.rank_biserial,
        "interval of the mean difference, low": interval.low,
        "interval of the mean difference, high": interval.high,
        "Welch t": seeds.t,
        "Welch degrees of freedom": seeds.df,
        "p of Welch": seeds.p,
        "Hedges g": seeds.hedges_g,
        **{
            f"Holm of {p:.3g}".replace("0.", "."): value
            for p, value in zip(given["holm"]["p"], holm(given["holm"]["p"]), strict=True)
        },
    }
    shown = {name: numbers(value) for name, value in rows_with_head("statistic")}
    assert set(shown) == set(computed)
    for name, (value,) in shown.items():
        assert computed[name] == pytest.approx(value, abs=HALF_OF_THE_LAST_DIGIT, rel=0), name


def test_values_of_other_formulas_are_those_of_the_toy():
    known = [round(value, 6) for value in TOY["elsewhere@3"].values()]
    shown = [value for cells in rows_with_head("ours") for value in numbers(" ".join(cells))]
    assert len(shown) > 15
    assert all(value in known for value in shown)
    assert {cells[0].strip("`") for cells in rows_with_head("ours")} <= set(METRICS)


@pytest.mark.parametrize("module", [ranking, bias, exposure], ids=lambda module: module.__name__)
def test_every_metric_function_has_an_example(module):
    functions = [f for name, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__]
    public = [function for function in functions if not function.__name__.startswith("_")]
    assert len(public) >= 3
    for function in public:
        assert ">>>" in (function.__doc__ or ""), function.__name__
