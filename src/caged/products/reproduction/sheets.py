"""A table as cells of text, the same for a terminal, Markdown, LaTeX and a page; only the marks differ."""

from __future__ import annotations

from typing import NamedTuple

from caged.evaluation.significance import LEAST_RUNS, LEVEL
from caged.page.numbers import UNDEFINED, percent_change
from caged.page.text_table import TextTable, latex, latex_row, markdown, markdown_table
from caged.products.reproduction.cells import Cell, Gap
from caged.products.reproduction.printed import Printed
from caged.products.reproduction.tables import DIGITS, GROUPS, METRICS, PRINTED, Column, Content, StudyTable
from caged.products.results import LEAST_FOR_INTERVAL
from caged.runs.protocols import PROTOCOLS

METRIC_TITLES = {"recall": "Recall@20", "ndcg": "NDCG@20"}
GROUP_TITLES = {"all": "all items", "niche": "niche items", "popular": "popular items"}
MOST_TOLD = 3  # records that are not counted
_SIGNS = {"better": "*", "worse": "†", None: ""}
_LATEX = {"*": r"$^{*}$", "†": r"$^{\dagger}$", "": ""}


class Shown(NamedTuple):
    text: str
    sign: str = ""  # "*" better, "†" worse
    best: bool = False


class Sheet(NamedTuple):
    """One metric of one block of a table."""

    name: str
    group: str  # of items
    title: str
    headers: list[str]
    rows: list[list[Shown]]


def sheets(table: StudyTable) -> list[Sheet]:
    """One per group of items and metric."""
    return [_sheet(table, group, metric) for group in GROUPS if group in table.blocks for metric in METRICS]


def _sheet(table: StudyTable, group: str, metric: str) -> Sheet:
    places = [place for place, column in enumerate(table.columns) if column.metric == metric]
    seeds = "seeds" if len(table.protocols) == 1 else f"seeds ({', '.join(table.protocols)})"
    rows = [
        [Shown(row.title), Shown(", ".join(map(str, row.seeds.values()))), *(_shown(cells[place]) for place in places)]
        for row, cells in zip(table.rows, table.blocks[group], strict=True)
    ]
    return Sheet(
        f"{table.name}-{group}-{metric}",
        group,
        f"{table.dataset}, {table.section}: {METRIC_TITLES[metric]}, {GROUP_TITLES[group]}",
        ["method", seeds, *(_heading(table.columns[place]) for place in places)],
        rows,
    )


def _heading(column: Column) -> str:
    """The NDCG that the paper prints is not the usual one."""
    usual = column.metric == "recall" or column.source == "honest"
    return column.source if usual else f"{column.source} (100 hits)"


def _shown(cell: Content) -> Shown:
    if isinstance(cell, Gap):
        return Shown(UNDEFINED if cell.reason == "not planned" else cell.reason)
    if isinstance(cell, Printed):
        change = cell.change or ""
        brackets = f" ({change.rstrip('*')})" if change else ""
        return Shown(f"{cell.value:.{DIGITS}f}{brackets}", "*" * change.count("*"))
    return Shown(_value(cell), _SIGNS[cell.sign], cell.best)


def _value(cell: Cell) -> str:
    text = f"{cell.mean:.{DIGITS}f}"
    if cell.half is not None:
        text += f" ± {cell.half:.{DIGITS}f}"
    if cell.change is None:
        return text
    between = "" if cell.interval is None else f" [{cell.interval[0]:+.1f}, {cell.interval[1]:+.1f}]"
    return f"{text} ({percent_change(cell.change)}{between})"


# ---------------------------------------------------------------- what a reader has to know


def caption(table: StudyTable, best: str = "in bold") -> list[str]:
    """Sentences below a table."""
    finished, planned = table.runs
    said = [
        f"Mean over seeds, in brackets the change against {table.base} on the seeds that both have; best measured "
        f"value {best}. ± is half of "
        f"Student's 95% interval over seeds, square brackets hold Welch's 95% interval of the change in percent; both "
        f"from {LEAST_FOR_INTERVAL} seeds on. They say how much another seed may differ, not other users."
    ]
    said.append(_about_tests(table))
    if table.untested and sum(table.tests.values()):
        listed = "; ".join(f"under {protocol} {', '.join(titles)}" for protocol, titles in table.untested.items())
        said.append(
            f"Not tested, for lack of values per user or of {LEAST_RUNS} seeds, and so without a sign whatever the "
            f"change: {listed}."
        )
    if table.not_counted:
        said.append(_about_not_counted(table))
    if table.without_users:
        said.append(
            f"The values per user that belong to {table.without_users} of these records are missing beside them: these "
            "records take no part in a test over users."
        )
    if any(column.source == PRINTED for column in table.columns):
        said.append(
            "Printed values are those of the CAGED paper, with its stars. Its NDCG is that of the released code, whose "
            "ideal list holds the hits among the first 100 places; protocol honest reports the usual NDCG."
        )
    if "Pinterest" in table.dataset and any(column.source == PRINTED for column in table.columns):
        said.append("The printed Pinterest has 55,186 users, this part of it 37,501: they are not comparable.")
    said.append(table.tuning)
    if table.settings:
        own = "; ".join(f"{title}: {', '.join(texts)}" for title, texts in table.settings.items())
        said.append(f"Set otherwise than in {table.base}, by the plan or a preset: {own}.")
    said += [
        f"{warning[0].upper()}{warning[1:].rstrip('.')}."
        for protocol in table.protocols
        if (warning := PROTOCOLS[protocol].warning)
    ]
    said.append(
        f"{finished} of {planned} planned runs are finished; those recorded took {table.gpu_minutes:.1f} GPU minutes."
    )
    return said


def _about_not_counted(table: StudyTable) -> str:
    told = [f"{place} ({reason})" for place, reason in list(table.not_counted.items())[:MOST_TOLD]]
    more = len(table.not_counted) - len(told)
    return f"Recorded, but not counted: {', '.join(told)}{f' and {more} more' if more else ''}."


def _about_tests(table: StudyTable) -> str:
    users, seeds = table.tests["users"], table.tests["seeds"]
    if not users + seeds:
        return (
            f"No stars: no row has {LEAST_RUNS} seeds, or values per user beside those of {table.base}, so nothing is "
            "tested."
        )
    parts = [
        *([f"paired t over users ({users} tests)"] if users else []),
        *([f"Welch's t over seeds, from {LEAST_RUNS} on ({seeds} tests)"] if seeds else []),
    ]
    return (
        f"* better, † worse than {table.base}: {' or '.join(parts)}, p < {LEVEL} after Holm's correction for all "
        f"{users + seeds} tests of the table.{' A test over users says nothing about another seed.' if users else ''}"
    )


# ---------------------------------------------------------------- terminal, Markdown, LaTeX


def text_tables(table: StudyTable) -> list[TextTable]:
    """¹ is the best value of a column."""
    return [
        TextTable(sheet.title, sheet.headers, [[_plain(cell) for cell in row] for row in sheet.rows])
        for sheet in sheets(table)
    ]


def _plain(cell: Shown) -> str:
    return cell.text + cell.sign + "¹" * cell.best


def markdown_text(table: StudyTable) -> str:
    """A heading and a table per group of items and metric, then what a reader has to know."""
    parts = []
    for sheet in sheets(table):
        right = [False, *(True for _ in sheet.headers[1:])]
        rows = [[marked_cell(cell) for cell in row] for row in sheet.rows]
        parts += [f"**{sheet.title}**", markdown_table(sheet.headers, rows, right)]
    return "\n\n".join([*parts, "\n".join(markdown(sentence) for sentence in caption(table))]) + "\n"


def marked_cell(cell: Shown) -> str:
    text = markdown(cell.text)
    return (f"**{text}**" if cell.best else text) + cell.sign.replace("*", "\\*")


def latex_text(table: StudyTable, command: str) -> str:
    r"""For the packages booktabs and graphicx, to be read with \input."""
    found = [f"% Written by {' '.join(command.split())}", "% Needs the packages booktabs and graphicx."]
    said = _latex_sentence(" ".join(caption(table)))
    for sheet in sheets(table):
        found += [
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{latex(sheet.title)}. {said}}}",
            rf"\label{{tab:{sheet.name}}}",
            r"\resizebox{\textwidth}{!}{%",
            rf"\begin{{tabular}}{{l{'r' * (len(sheet.headers) - 1)}}}",
            r"\toprule",
            latex_row([latex(header) for header in sheet.headers]),
            r"\midrule",
            *(latex_row([latex(title.text), *map(_latex_value, values)]) for title, *values in sheet.rows),
            r"\bottomrule",
            r"\end{tabular}",
            "}",
            r"\end{table*}",
        ]
    return "\n".join(found) + "\n"


def _latex_value(cell: Shown) -> str:
    if cell.text == UNDEFINED:
        return "--"
    text = latex(cell.text).replace("-", "$-$") if cell.text[:1].isdigit() else latex(cell.text)
    return (rf"\textbf{{{text}}}" if cell.best else text) + _LATEX[cell.sign]


def _latex_sentence(text: str) -> str:
    return latex(text).replace("†", r"$\dagger$").replace("* better", r"$*$ better")
