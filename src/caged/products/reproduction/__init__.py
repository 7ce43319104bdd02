"""The paper's tables and figures from the records of a plan, beside the printed values.

printed   what the paper prints
titles    how datasets and rows are called
content   what a record holds, read with care
cells     means, intervals and tests of one row
tables    the tables, as data
sheets    the same as text, Markdown and LaTeX
page      and as a page
figures   curves, trade-off, learning curves and densities
"""

from caged.products.reproduction.figures import Drawn, study_figures
from caged.products.reproduction.page import tables_html
from caged.products.reproduction.sheets import caption, latex_text, markdown_text, text_tables
from caged.products.reproduction.tables import StudyTable, study_tables

__all__ = [
    "Drawn",
    "StudyTable",
    "caption",
    "latex_text",
    "markdown_text",
    "study_figures",
    "study_tables",
    "tables_html",
    "text_tables",
]
