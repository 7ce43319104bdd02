"""A table of results for a terminal, in Markdown and in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import LEAST_RUNS, LEVEL
from caged.page.numbers import UNDEFINED
from caged.page.text_table import TextTable, latex, latex_cell, latex_row, markdown, markdown_table
from caged.products.results.table import LEAST_FOR_INTERVAL, Cell, Column, ResultsTable
from caged.runs.protocols import PROTOCOLS

MINUS = "\u2212"
WIDE = 4  # columns; a table with more is scaled to the width of the page, and so is half as many with intervals
_PLACES = {"best": "¹", "second": "²", None: " "}
_SIGNS = {"better": "*", "worse": "†", None: ""}
_LATEX_SIGNS = {"better": r"$^{*}$", "worse": r"$^{\dagger}$", None: ""}
_NAMES = {"ndcg": "NDCG", "ndcg_hits100": "NDCG (100 hits)", "mrr": "MRR", "map": "MAP", "arp": "ARP", "upd": "UPD"}


def metric_name(key: MetricKey) -> str:
    """
    >>> metric_name(MetricKey.parse("recall@20/niche")), metric_name(MetricKey.parse("tail_share@10"))
    ('Recall@20 niche', 'Tail share@10')
    """
    name = _NAMES.get(key.name, key.name.replace("_", " ").capitalize())
    return f"{name}@{key.k}" + (f" {key.group}" if key.group else "")


def caption(table: ResultsTable, *, intervals: bool = False, marks: tuple[str, str] = ("in bold", "underlined")) -> str:
    """What a reader has to know: what is shown, over how many seeds, and what the marks rest on."""
    fewest, *most = table.seeds
    seeds = f"{fewest} to {most[0]} seeds" if most else f"{fewest} seed{'s' * (fewest > 1)}"
    said = [f"Test part, protocol {table.protocol}; mean over {seeds}; best {marks[0]}, second best {marks[1]}."]
    if intervals:
        said.append(
            f"± is half the 95% interval over seeds (Student's t), given from {LEAST_FOR_INTERVAL} seeds on; it says "
            "how much another seed may differ, not other users."
        )
    if table.tests:
        said.append(
            f"* better, † worse than {table.baseline}: Welch's t over seeds, p < {LEVEL} after Holm's correction for "
            f"{table.tests} test{'s' * (table.tests > 1)}, where both have at least {LEAST_RUNS} seeds."
        )
    else:
        said.append(f"No stars: with fewer than {LEAST_RUNS} seeds per method nothing is tested.")
    warning = PROTOCOLS[table.protocol].warning if table.protocol in PROTOCOLS else None
    return " ".join([*said, *([f"{warning[0].upper()}{warning[1:].rstrip('.')}."] if warning else [])])


# ---------------------------------------------------------------- terminal


def results_text(table: ResultsTable, *, intervals: bool = False) -> list[TextTable]:
    """One table per dataset, which a terminal has room for; ¹ is the best, ² the second best."""
    found, start, tested = [], 0, table.tests > 0

    def plain(cells: Sequence[Cell | None], place: int) -> str:
        return _plain(cells[place], table.columns[place], intervals=intervals, tested=tested)

    for dataset, count in table.datasets:
        columns = range(start, start + count)
        start += count
        rows = [
            [
                name,
                *(_plain(cells[place], table.columns[place], intervals=intervals, tested=tested) for place in columns),
            ]
            for name, cells in table.rows.items()
            if any(cells[place] for place in columns)
        ]
        headers = ["method", *(metric_name(table.columns[place].metric) for place in columns)]
        found.append(TextTable(f"{dataset}, protocol {table.protocol}", headers, rows))
    return found


def _plain(cell: Cell | None, column: Column, *, intervals: bool, tested: bool) -> str:
    """Marks are as wide in every cell, so that the digits stand below each other."""
    if cell is None:
        return UNDEFINED
    return _figure(cell, column, intervals) + (_SIGNS[cell.sign] or " " * tested) + _PLACES[cell.place]


# ---------------------------------------------------------------- Markdown


def results_markdown(table: ResultsTable, command: str, *, intervals: bool = False) -> str:
    named = [name for name, count in table.datasets for _ in range(count)]
    headers = [
        "method",
        *(f"{name}: {metric_name(one.metric)}" for name, one in zip(named, table.columns, strict=True)),
    ]
    rows = [
        [markdown(name), *(_marked(cell, column, intervals) for cell, column in zip(cells, table.columns, strict=True))]
        for name, cells in table.rows.items()
    ]
    drawn = markdown_table([markdown(header) for header in headers], rows, [False, *(True for _ in table.columns)])
    notes = [f"{note[0].upper()}{note[1:]}." for note in table.notes]
    said = markdown(caption(table, intervals=intervals))
    return "\n\n".join([drawn, said, *notes, f"Written by `{command}`."]) + "\n"


def _marked(cell: Cell | None, column: Column, intervals: bool) -> str:
    if cell is None:
        return UNDEFINED
    figure = _figure(cell, column, intervals).replace("-", MINUS)
    drawn = {"best": f"**{figure}**", "second": f"<u>{figure}</u>", None: figure}[cell.place]
    return drawn + _SIGNS[cell.sign].replace("*", "\\*")


# ---------------------------------------------------------------- LaTeX


def results_latex(table: ResultsTable, command: str, *, label: str, intervals: bool = False) -> str:
    r"""For the package booktabs, to be read with \input; a wide table is scaled, which needs graphicx."""
    wide = len(table.columns) * (2 if intervals else 1) > WIDE
    packages = "booktabs and graphicx" if wide else "booktabs"
    comments = [f"Written by {command}", f"Needs the package {packages}.", *table.notes]
    alignment = "l" + "".join("r" * count for _, count in table.datasets)
    spans, start = [], 2
    for _, count in table.datasets:
        spans.append(rf"\cmidrule(lr){{{start}-{start + count - 1}}}")
        start += count
    groups = [rf"\multicolumn{{{count}}}{{c}}{{{latex(name)}}}" for name, count in table.datasets]
    rows = [
        [latex(name), *(_latex(cell, column, intervals) for cell, column in zip(cells, table.columns, strict=True))]
        for name, cells in table.rows.items()
    ]
    tabular = [
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        latex_row(["", *groups]),
        " ".join(spans),
        latex_row(["Method", *(_latex_header(column.metric) for column in table.columns)]),
        r"\midrule",
        *map(latex_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(
        [
            *(f"% {' '.join(comment.split())}" for comment in comments),
            r"\begin{table*}" if wide else r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_sentence(caption(table, intervals=intervals))}}}",
            rf"\label{{{label}}}",
            *([r"\resizebox{\textwidth}{!}{%", *tabular, "}"] if wide else tabular),
            r"\end{table*}" if wide else r"\end{table}",
            "",
        ]
    )


def _latex_header(key: MetricKey) -> str:
    """The group of a metric below its name, which keeps the column narrow."""
    name, group = latex(metric_name(MetricKey(key.name, key.k))), key.group
    return rf"\shortstack[r]{{{name}\\{latex(group)}}}" if group else name


def _latex(cell: Cell | None, column: Column, intervals: bool) -> str:
    if cell is None:
        return "--"
    figure = latex_cell(_figure(cell, column, intervals))
    drawn = {"best": rf"\textbf{{{figure}}}", "second": rf"\underline{{{figure}}}", None: figure}[cell.place]
    return drawn + _LATEX_SIGNS[cell.sign]


def _latex_sentence(text: str) -> str:
    return latex(text).replace("†", r"$\dagger$").replace("* better", r"$*$ better")


def _figure(cell: Cell, column: Column, intervals: bool) -> str:
    mean = f"{cell.mean:.{column.digits}f}"
    return mean if cell.half is None or not intervals else f"{mean} ± {cell.half:.{column.digits}f}"
