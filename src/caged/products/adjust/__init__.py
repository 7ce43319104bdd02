"""Popularity taken out of a recommender after training: of a run, of anybody's vectors, of anybody's lists.

Lists are adjusted without torch; what needs it is imported when one of its names is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from caged.products.adjust.judge import Outcome
from caged.products.adjust.of_lists import ListsToAdjust, adjust_lists
from caged.products.adjust.page import adjustment_html
from caged.products.adjust.tables import change_table, curve_tables, sentences
from caged.products.adjust.view import Adjusted, adjust

if TYPE_CHECKING:
    from caged.products.adjust.of_run import RunToAdjust, adjust_model, adjust_run, write_adjusted_run
    from caged.products.adjust.of_vectors import VectorsToAdjust, adjust_vectors, check_vector_files

_WITH_TORCH = {
    "RunToAdjust": "of_run",
    "VectorsToAdjust": "of_vectors",
    "adjust_model": "of_run",
    "adjust_run": "of_run",
    "adjust_vectors": "of_vectors",
    "check_vector_files": "of_vectors",
    "write_adjusted_run": "of_run",
}

__all__ = [
    "Adjusted",
    "ListsToAdjust",
    "Outcome",
    "RunToAdjust",
    "VectorsToAdjust",
    "adjust",
    "adjust_lists",
    "adjust_model",
    "adjust_run",
    "adjust_vectors",
    "adjustment_html",
    "change_table",
    "check_vector_files",
    "curve_tables",
    "sentences",
    "write_adjusted_run",
]


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'caged.products.adjust' has no attribute '{name}'")
    return getattr(importlib.import_module(f"caged.products.adjust.{_WITH_TORCH[name]}"), name)
