"""Popularity taken out of a recommender after training: of a run, of anybody's vectors, of anybody's lists."""

from caged.products.adjust.judge import Outcome
from caged.products.adjust.of_lists import ListsToAdjust, adjust_lists
from caged.products.adjust.page import adjustment_html
from caged.products.adjust.tables import change_table, curve_tables, sentences
from caged.products.adjust.view import Adjusted, adjust

__all__ = [
    "Adjusted",
    "ListsToAdjust",
    "Outcome",
    "adjust",
    "adjust_lists",
    "adjustment_html",
    "change_table",
    "curve_tables",
    "sentences",
]
