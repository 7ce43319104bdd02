"""A comparison as Markdown and as LaTeX: the tables of the terminal, for a document."""

from __future__ import annotations

from collections.abc import Sequence

from caged.products.compare.comparison import Comparison
from caged.products.compare.tables import TextTable, closing, tables

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"$<$",
        "±": r"$\pm$",
    }
)


def comparison_markdown(comparison: Comparison, command: str) -> str:
    parts = [f"# Comparison with {_cell(comparison.baseline.name)}"]
    parts += [f"> Warning: {warning}" for warning in comparison.warnings]
    parts += [_markdown_table(table) for table in tables(comparison)]
    parts += ["\n".join(f"- {sentence}" for sentence in closing(comparison)), f"Written by `{command}`."]
    return "\n\n".join(parts) + "\n"


def comparison_latex(comparison: Comparison, command: str) -> str:
    r"""Tables for the package booktabs, to be read with \input."""
    comments = [f"Written by {command}", *(f"Warning: {one}" for one in comparison.warnings), *closing(comparison)]
    written = [f"% {' '.join(comment.split())}" for comment in comments]
    return "\n".join([*written, *map(_latex_table, tables(comparison))]) + "\n"


def latex(text: str) -> str:
    r"""Text with the characters that LaTeX reserves written out.

    >>> latex("tail_share@20 of 5% < 1")
    'tail\\_share@20 of 5\\% $<$ 1'
    """
    return text.translate(_LATEX)


def _markdown_table(table: TextTable) -> str:
    rule = "|".join(["---", *("---:" for _ in table.headers[1:])])
    lines = [_markdown_row(table.headers), f"|{rule}|", *map(_markdown_row, table.rows)]
    return "\n".join([f"**{_cell(_sentence(table.title))}**", "", *lines])


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")


def _latex_table(table: TextTable) -> str:
    rows = [" & ".join(map(latex, row)) + r" \\" for row in (table.headers, *table.rows)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex(_sentence(table.title))}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.headers) - 1)}}}",
            r"\toprule",
            rows[0],
            r"\midrule",
            *rows[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _sentence(title: str) -> str:
    return f"{title[0].upper()}{title[1:]}."
