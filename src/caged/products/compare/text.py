"""A comparison as Markdown and as LaTeX: the tables of the terminal, for a document."""

from __future__ import annotations

from caged.page.text_table import TextTable, latex_table, markdown, markdown_table
from caged.products.compare.comparison import Comparison
from caged.products.compare.tables import closing, comparison_tables


def comparison_markdown(comparison: Comparison, command: str) -> str:
    parts = [f"# Comparison with {markdown(comparison.baseline.name)}"]
    parts += [f"> Warning: {warning}" for warning in comparison.warnings]
    parts += [_markdown_table(table) for table in comparison_tables(comparison)]
    parts += ["\n".join(f"- {sentence}" for sentence in closing(comparison)), f"Written by `{command}`."]
    return "\n\n".join(parts) + "\n"


def comparison_latex(comparison: Comparison, command: str) -> str:
    r"""Tables for the package booktabs, to be read with \input."""
    comments = [f"Written by {command}", *(f"Warning: {one}" for one in comparison.warnings), *closing(comparison)]
    written = [f"% {' '.join(comment.split())}" for comment in comments]
    drawn = [
        latex_table(_sentence(table.title), table.headers, table.rows, label=f"tab:comparison-{number}")
        for number, table in enumerate(comparison_tables(comparison), start=1)
    ]
    return "\n".join([*written, *drawn]) + "\n"


def _markdown_table(table: TextTable) -> str:
    right = [False, *(True for _ in table.headers[1:])]
    headers, *rows = ([markdown(cell) for cell in row] for row in (table.headers, *table.rows))
    return f"**{markdown(_sentence(table.title))}**\n\n{markdown_table(headers, rows, right)}"


def _sentence(title: str) -> str:
    return f"{title[0].upper()}{title[1:]}."
