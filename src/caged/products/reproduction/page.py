"""The tables of a study as a page."""

from __future__ import annotations

from collections.abc import Sequence

from caged.evaluation.metrics import MetricKey
from caged.page.definitions import meaning
from caged.page.html import ColumnHead, Page, Section, Strong, Table, render
from caged.products.reproduction.sheets import Sheet, Shown, caption, sheets
from caged.products.reproduction.tables import GROUPS, K, StudyTable
from caged.products.study import Plan

NO_BREAK = "\u00a0"


def tables_html(plan: Plan, tables: Sequence[StudyTable], command: str) -> str:
    runs: dict[str, bool] = {}
    for table in tables:
        runs |= table.planned  # a run in several sections is one run
    return render(
        Page(
            title=plan.title,
            subtitle=f"{sum(runs.values())} of {len(runs)} planned runs of these tables are recorded.",
            findings=(),
            sections=[_section(table) for table in tables],
            glossary=[(key, meaning(key)) for key in _keys()],
            command=command,
        )
    )


def _keys() -> list[MetricKey]:
    groups = [None if group == "all" else group for group in GROUPS]
    return [MetricKey(name, K, group) for name in ("recall", "ndcg", "ndcg_hits100") for group in groups]


def _section(table: StudyTable) -> Section:
    return Section(
        f"{table.dataset}: {table.section}",
        paragraphs=[table.about] if table.about else (),
        tables=[_as_table(sheet) for sheet in sheets(table)],
        notes=caption(table),
    )


def _as_table(sheet: Sheet) -> Table:
    heads = [ColumnHead(name, numeric=place > 0) for place, name in enumerate(sheet.headers)]
    return Table(sheet.title, heads, [[_cell(cell) for cell in row] for row in sheet.rows])


def _cell(cell: Shown) -> str:
    """A line is broken only between a value and its change."""
    value, bracket, change = (cell.text + cell.sign).partition(" (")
    text = value.replace(" ", NO_BREAK) + bracket + change.replace(" ", NO_BREAK)
    return Strong(text) if cell.best else text
