"""An answer as Markdown and LaTeX."""

from __future__ import annotations

from caged.products.tune.finals import Finals
from caged.products.tune.tables import all_tables
from caged.products.tune.text import answer_latex, answer_markdown
from tests.products.tune.answered import Answered, on_test


def test_markdown_has_every_table(answered: Answered) -> None:
    answer = answered(trials=7, tests=Finals(on_test(lightgcn=[0.3, 0.5], ips=[0.4, 0.6])))
    text = answer_markdown(answer, "caged tune show t")
    assert answer.winner is not None
    assert text.startswith(f"# Tuning on log\n\n{answer.winner.method} wins: ")
    assert text.count("|---") >= len(all_tables(answer))
    assert "| ips | recall@20 |" in text
    assert "learning\\_rate" in text
    assert text.endswith("Written by `caged tune show t`.\n")


def test_latex_aligns_numbers_and_escapes_names(answered: Answered) -> None:
    answer = answered(trials=7, tests=Finals(on_test(lightgcn=[0.3, 0.5], ips=[0.4, 0.6])))
    text = answer_latex(answer, "caged tune show t")
    assert answer.winner is not None
    assert text.startswith(f"% Written by caged tune show t\n% {answer.winner.method} wins: ")
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == len(all_tables(answer))
    assert r"\begin{tabular}{llrrrr}" in text  # method, metric, numbers
    assert r"$\pm$" in text
    assert r"learning\_rate" in text
