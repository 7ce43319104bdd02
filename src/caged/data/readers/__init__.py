"""Logs from files and frames, checked on the way in.

files       which reader a file needs; whole logs from files and frames
columns     which columns a log has, and the checks of each
text        CSV, TSV and LightGCN text
recbole     RecBole's .inter files
sparse      matrices of scipy
arrow_files Feather and JSON lines
folders     a log in a folder of part files
canonical   the folder that an import writes
batches     a log of any size as tables of bounded size
"""

from caged.data.readers.batches import is_text_table, tables_of
from caged.data.readers.canonical import is_canonical, read_canonical
from caged.data.readers.columns import Columns
from caged.data.readers.files import DEFAULT_COLUMNS, read_frame, read_log, validate_log

__all__ = [
    "DEFAULT_COLUMNS",
    "Columns",
    "is_canonical",
    "is_text_table",
    "read_canonical",
    "read_frame",
    "read_log",
    "tables_of",
    "validate_log",
]
