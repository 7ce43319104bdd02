"""Recorded results as the table of a paper: datasets side by side, a row per method. Needs no torch."""

from caged.products.results.reading import read_results
from caged.products.results.table import LEAST_FOR_INTERVAL, ResultsTable, results_tables
from caged.products.results.text import caption, results_latex, results_markdown, results_text

__all__ = [
    "LEAST_FOR_INTERVAL",
    "ResultsTable",
    "caption",
    "read_results",
    "results_latex",
    "results_markdown",
    "results_tables",
    "results_text",
]
