"""The tables of an answer; trials are made up."""

from __future__ import annotations

from pathlib import Path

from caged.products.tune.finals import FinalRun, Finals
from caged.products.tune.tables import all_tables, chosen_table, cost_table, effect_table, lead_table, tuned_table
from tests.products.tune.answered import Answered, on_test, with_users


def test_tuned_against_default_on_validation_and_test(answered: Answered) -> None:
    answer = answered(trials=4, tests=Finals(on_test(lightgcn=[0.3, 0.5], ips=[0.4])))
    table = tuned_table(answer)
    assert table.headers == ["method", "metric", "default", "tuned", "change", "tuned, test"]
    rows = {(row[0], row[1]): list(row[2:]) for row in table.rows}
    assert set(rows) == {(name, key) for name in ("lightgcn", "ips") for key in ("recall@20", "recall@20/niche")}
    default, tuned, change, test = rows["lightgcn", "recall@20"]
    assert float(tuned) >= float(default)
    assert change.endswith("%")
    assert test == "0.4000 ± 0.1414"
    assert rows["ips", "recall@20"][-1] == "0.4000"
    assert rows["ips", "recall@20/niche"][-1] == "-"  # not measured


def test_tested_defaults_have_their_columns(answered: Answered, tmp_path: Path) -> None:
    tuned, default = with_users(tmp_path, "a", 2, 0.1), with_users(tmp_path, "b", 2, 0.0)
    table = tuned_table(answered(tests=Finals({"ips": tuned}, {"ips": default})))
    row = dict(zip(table.headers, table.rows[2], strict=True))
    assert (row["method"], row["metric"]) == ("ips", "recall@20")
    assert row["95% over users"] == "+0.1000 to +0.1000"
    assert " to " in row["95% over seeds"]
    assert row["change, test"].startswith("+")


def test_who_comes_first_stands_first(answered: Answered) -> None:
    table = chosen_table(answered("recall@20>=0.6"))
    assert [list(row) for row in table.rows] == [
        ["ips", "1", "yes", "0", "defaults"],
        ["lightgcn", "-", "no", "0", "defaults"],
    ]


def test_leads_are_the_winner_less_the_others(answered: Answered) -> None:
    table = lead_table(answered(tests=Finals(on_test(lightgcn=[0.3, 0.5], ips=[0.4, 0.6]))))
    assert table.title.startswith("ips less each other method")
    assert list(table.rows[0])[:4] == ["lightgcn", "recall@20", "+0.1000", "+25.0%"]
    assert table.rows[0][4] == "-"


def test_budgets_stand_side_by_side(answered: Answered) -> None:
    tested = on_test(lightgcn=[0.3, 0.5], ips=[0.4])
    tested["ips"].append(FinalRun(2, Path("r"), None, "the loss became nan"))
    table = cost_table(answered(tests=Finals(tested)))
    assert "on A Processor" in table.title
    assert [list(row) for row in table.rows] == [
        ["lightgcn", "1", "0", "2", "0.5", "2", "4", "0.5", ""],
        ["ips", "1", "0", "2", "0.5", "2", "2", "0.2", "seed 2: the loss became nan"],
    ]


def test_a_document_also_says_what_each_option_did(answered: Answered) -> None:
    answer = answered(trials=8)
    table = effect_table(answer)
    assert ("lightgcn", "train.learning_rate") in [tuple(row[:2]) for row in table.rows]
    assert all(": 0." in row[-1] for row in table.rows)  # the mean at each value
    assert table in all_tables(answer)
