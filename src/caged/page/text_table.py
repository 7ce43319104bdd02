"""Tables as text: for a terminal, in Markdown and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from caged.page.numbers import UNDEFINED

Row = Sequence[str]

GAP = 2  # blanks between two columns
_NUMBER = r"[+\-\u2212<]?\d[\d,]*(\.\d+)?%?( pp| times)?"
# With what may stand behind: an interval, marks of significance and of place, blanks that keep the digits in line.
_RANGE = rf"\[{_NUMBER}, {_NUMBER}\]"
_FIGURES = re.compile(rf"{_RANGE}|{_NUMBER}( (±|to) {_NUMBER})*( {_RANGE})?[*† ]?[¹² ]?")

_LIGATURE = re.compile("-(?=-)")  # LaTeX makes a dash of two hyphens
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
        ">": r"$>$",
        "|": r"\textbar{}",
        "±": r"$\pm$",
    }
)


class TextTable(NamedTuple):
    title: str
    headers: Row
    rows: Sequence[Row]
    keys: int = 1  # the first columns, which say what a row is about
    spare: Sequence[str] = ()  # headers of columns that a narrow terminal leaves out, the first of them first


def is_figure(cell: str) -> bool:
    """Whether a cell holds a number or a range of numbers, and nothing else.

    >>> [is_figure(cell) for cell in ("1,234.5", "-", "+3.1%", "0.5 ± 0.1", "-0.1 pp [-0.2, 0.0]", "2 layers", "")]
    [True, True, True, True, True, False, False]
    """
    return cell == UNDEFINED or _FIGURES.fullmatch(cell) is not None


def padded(cell: str, width: int, *, right: bool) -> str:
    """With blanks up to a width on a screen, where some characters take two places."""
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if right else cell + blanks


def figure_columns(rows: Sequence[Row], columns: int) -> list[bool]:
    """The columns that hold figures only: they are aligned to the right."""
    return [bool(rows) and all(is_figure(row[column]) for row in rows) for column in range(columns)]


def plain_lines(headers: Row, rows: Sequence[Row]) -> list[str]:
    """Columns of equal width, figures aligned to the right.

    >>> plain_lines(["metric", "value"], [["recall", "0.5"], ["ndcg", "0.25"]])
    ['metric  value', 'recall    0.5', 'ndcg     0.25']
    """
    widths = [max(map(cell_len, column)) for column in zip(headers, *rows, strict=True)]
    right = figure_columns(rows, len(headers))
    return [
        (" " * GAP)
        .join(padded(cell, width, right=side) for cell, width, side in zip(row, widths, right, strict=True))
        .rstrip()
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


def latex_table(
    caption: str, headers: Row, rows: Sequence[Row], *, label: str, right: Sequence[bool] | None = None
) -> str:
    """For the package booktabs; `right` are the columns of numbers: by default all but the first."""
    columns = "".join("r" if side else "l" for side in right or [False, *(True for _ in headers[1:])])
    lines = [latex_row(list(map(latex_cell, row))) for row in (headers, *rows)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex(caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def latex_row(cells: Row) -> str:
    r"""Cells are LaTeX already. The end of the line before, or a rule, would take a bracket or a star for its argument.

    >>> print(latex_row(["[ours] CAGED", "0.5"]))
    {}[ours] CAGED & 0.5 \\
    """
    first = "{}" if cells[0].startswith(("[", "*")) else ""
    return first + " & ".join(cells) + r" \\"


def latex_cell(cell: str) -> str:
    r"""A figure with a true minus sign, or text.

    >>> latex_cell("-0.5 to +0.1"), latex_cell("-"), latex_cell("niche-taste")
    ('$-$0.5 to +0.1', '--', 'niche-taste')
    """
    if cell == UNDEFINED:
        return "--"
    return latex(cell).replace("-", "$-$") if is_figure(cell) else latex(cell)


def latex(text: str) -> str:
    r"""Text with the characters that LaTeX reserves written out.

    >>> latex("tail_share@20 of 5% < 1"), latex("--keep 0.9")
    ('tail\\_share@20 of 5\\% $<$ 1', '-{}-keep 0.9')
    """
    return _LIGATURE.sub("-{}", text.translate(_LATEX))


def _markdown_row(cells: Row) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
