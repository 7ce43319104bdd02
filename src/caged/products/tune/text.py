"""The answer of a search as Markdown and as LaTeX: the tables of the terminal, for a document."""

from __future__ import annotations

from caged.page.text_table import TextTable, figure_columns, latex_table, markdown, markdown_table
from caged.products.tune.answer import Answer
from caged.products.tune.tables import all_tables
from caged.products.tune.words import answer_sentences


def answer_markdown(answer: Answer, command: str) -> str:
    parts = [f"# Tuning on {markdown(answer.dataset)}", *map(markdown, answer_sentences(answer))]
    parts += [_markdown_table(table) for table in all_tables(answer)]
    return "\n\n".join([*parts, f"Written by `{command}`."]) + "\n"


def answer_latex(answer: Answer, command: str) -> str:
    r"""Tables for the package booktabs, to be read with \input."""
    comments = [f"Written by {command}", *answer_sentences(answer)]
    tables = [
        latex_table(_sentence(table.title), table.headers, table.rows, label=f"tab:tune-{number}", right=_right(table))
        for number, table in enumerate(all_tables(answer), start=1)
    ]
    return "\n".join([*(f"% {comment}" for comment in comments), *tables]) + "\n"


def _markdown_table(table: TextTable) -> str:
    headers, *rows = ([markdown(cell) for cell in row] for row in (table.headers, *table.rows))
    return f"**{markdown(_sentence(table.title))}**\n\n{markdown_table(headers, rows, _right(table))}"


def _right(table: TextTable) -> list[bool]:
    return figure_columns(table.rows, len(table.headers))


def _sentence(title: str) -> str:
    return f"{title[0].upper()}{title[1:]}."
