"""Runs and audits beside each other: differences, intervals, tests. Needs no torch."""

from caged.products.compare.comparison import Comparison, compare
from caged.products.compare.differences import differences
from caged.products.compare.entries import Entry, read_result
from caged.products.compare.groups import Group, same_split
from caged.products.compare.page import comparison_html
from caged.products.compare.tables import closing, comparison_tables
from caged.products.compare.text import comparison_latex, comparison_markdown

__all__ = [
    "Comparison",
    "Entry",
    "Group",
    "closing",
    "compare",
    "comparison_html",
    "comparison_latex",
    "comparison_markdown",
    "comparison_tables",
    "differences",
    "read_result",
    "same_split",
]
