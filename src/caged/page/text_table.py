"""Tables as text: for a terminal, in Markdown and in LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

Row = Sequence[str]

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


class TextTable(NamedTuple):
    title: str
    headers: Row
    rows: Sequence[Row]


def plain_lines(headers: Row, rows: Sequence[Row], right: Sequence[bool] = ()) -> list[str]:
    """Columns of equal width, aligned to the right where `right` says so.

    >>> plain_lines(["metric", "value"], [["recall", "0.5"], ["ndcg", "0.25"]], [False, True])
    ['metric  value', 'recall    0.5', 'ndcg     0.25']
    """
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    aligned = [str.rjust if numeric else str.ljust for numeric in right or [False] * len(headers)]
    return [
        "  ".join(align(cell, width) for align, cell, width in zip(aligned, row, widths, strict=True)).rstrip()
        for row in (headers, *rows)
    ]


def markdown_table(headers: Row, rows: Iterable[Row], right: Sequence[bool] = ()) -> str:
    """Cells are Markdown already; only a vertical bar inside of one is escaped.

    >>> print(markdown_table(["method", "recall"], [["`a|b`", "0.5"]], [False, True]))
    | method | recall |
    |---|---:|
    | `a\\|b` | 0.5 |
    """
    rule = "|".join("---:" if numeric else "---" for numeric in right or [False] * len(headers))
    return "\n".join([_markdown_row(headers), f"|{rule}|", *map(_markdown_row, rows)])


def markdown(text: str) -> str:
    r"""Text with the characters that Markdown reads as marks escaped.

    >>> markdown("tail_share < 1 *")
    'tail\\_share &lt; 1 \\*'
    """
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")


def latex_table(caption: str, headers: Row, rows: Sequence[Row]) -> str:
    """For the package booktabs; the first column is text, the others are numbers."""
    lines = [" & ".join(map(latex, row)) + r" \\" for row in (headers, *rows)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex(caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(headers) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def latex(text: str) -> str:
    r"""Text with the characters that LaTeX reserves written out.

    >>> latex("tail_share@20 of 5% < 1")
    'tail\\_share@20 of 5\\% $<$ 1'
    """
    return text.translate(_LATEX)


def _markdown_row(cells: Row) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
