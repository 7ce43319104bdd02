"""What `--data` takes: a known dataset, a log file, or a folder with the parts of a given split."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from caged.data.columns import Columns
from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.readers import DEFAULT_COLUMNS, READERS, read_part, reader_for, suffix_of, validate_log
from caged.data.textformats import parse_lightgcn, read_lightgcn
from caged.errors import DataError, unknown

Catalogue = Literal["occurring", "max_id"]

DATA_FOLDER_VARIABLE = "CAGED_DATA"
RELEASED = {  # dataset name -> folder below CAGED_DATA
    "ml-1m-caged": "caged_movie",
    "epinions-caged": "caged_epinions",
    "gowalla": "gowalla",
    "yelp2018": "yelp2018",
}
PARTS = ("train", "valid", "test")
MOST_ROWS = 10**8  # of a catalogue 0..largest id: beyond it one stray id would fill the memory


@dataclass(frozen=True, eq=False)
class Source:
    """Either one `log`, or the `parts` of a given split (train, test and perhaps valid) with shared id maps."""

    name: str  # of the dataset, file or folder, for paths of results
    path: Path
    log: Interactions | None = None
    parts: Mapping[str, Interactions] | None = None


def load(
    source: str | Path,
    *,
    columns: Columns = DEFAULT_COLUMNS,
    min_rating: float | None = None,
    catalogue: Catalogue = "occurring",
) -> Source:
    """Read a known dataset (a name), a log file, or a folder with train and test files (and perhaps valid).

    The catalogue are the users and items that occur in any part. `catalogue="max_id"`, for LightGCN text only, makes
    it 0..largest id instead, gaps included. A name wins over a file of that name; write ./name for the file.
    """
    if catalogue not in ("occurring", "max_id"):
        raise DataError(unknown("catalogue", str(catalogue), ("occurring", "max_id")))
    name, path = _located(source)
    files = _part_files(path) if path.is_dir() else {"log": path}
    read = _read_up_to_max_id if catalogue == "max_id" else _read_occurring
    contents = read(files, columns, min_rating)
    whole = next(iter(contents.values()))  # any of them: they share the catalogue
    validate_log(whole, str(path))
    return Source(name, path, parts=contents) if path.is_dir() else Source(name, path, log=whole)


def _located(source: str | Path) -> tuple[str, Path]:
    if isinstance(source, str) and source in RELEASED:
        return source, _released_folder(source)
    path = Path(source)
    if isinstance(source, str) and path.name == source and suffix_of(path) is None and not path.exists():
        raise DataError(f"{unknown('dataset', source, RELEASED)}; a file or folder of that name does not exist either")
    name = path.name if path.name not in {"", ".."} else path.resolve().name
    suffix = None if path.is_dir() else suffix_of(path)
    return name[: len(name) - len(suffix or "")], path


def _released_folder(name: str) -> Path:
    root = os.environ.get(DATA_FOLDER_VARIABLE)
    if not root:
        raise DataError(
            f"dataset '{name}' is read from a local folder and {DATA_FOLDER_VARIABLE} is not set; "
            f"set it to the folder that holds {RELEASED[name]}/, for example: "
            f"export {DATA_FOLDER_VARIABLE}=/path/to/data"
        )
    folder = Path(root) / RELEASED[name]
    if not folder.is_dir():
        raise DataError(
            f"dataset '{name}' is not in {DATA_FOLDER_VARIABLE}={root}: there is no folder {folder}; put train.txt and "
            f"test.txt (or .gz) there, or set {DATA_FOLDER_VARIABLE} to the folder that holds {RELEASED[name]}/"
        )
    return folder


def _part_files(folder: Path) -> dict[str, Path]:
    """The file of each part, in the order of `PARTS`."""
    files = {}
    for part in PARTS:
        candidates = [path for suffix in READERS if (path := folder / f"{part}{suffix}").is_file()]
        if len(candidates) > 1:
            names = " and ".join(path.name for path in candidates)
            raise DataError(f"{folder} holds both {names}; keep one file per part")
        if candidates:
            files[part] = candidates[0]
    missing = [part for part in ("train", "test") if part not in files]
    if missing:
        present = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
        raise DataError(
            f"{folder} has no {' and no '.join(missing)} file, found: {present}; "
            f"a folder needs train and test (and may have valid) as .txt, .csv, .tsv or .parquet, "
            f"a single log is given as a file"
        )
    return files


def _read_occurring(files: Mapping[str, Path], columns: Columns, min_rating: float | None) -> dict[str, Interactions]:
    parts = {part: read_part(path, columns=columns, min_rating=min_rating) for part, path in files.items()}
    user_ids = IdMap.union(part.user_ids for part in parts.values())
    item_ids = IdMap.union(part.item_ids for part in parts.values())
    return {name: part.reindexed(user_ids, item_ids) for name, part in parts.items()}


def _read_up_to_max_id(
    files: Mapping[str, Path], columns: Columns, min_rating: float | None
) -> dict[str, Interactions]:
    for path in files.values():
        if reader_for(path) is not read_lightgcn or columns != DEFAULT_COLUMNS or min_rating is not None:
            raise DataError(
                f"{path} cannot have a catalogue up to its largest id: that needs LightGCN text (.txt), without column "
                f"names or a smallest rating; use catalogue 'occurring'"
            )
    lines = {part: parse_lightgcn(path) for part, path in files.items()}
    user_count = 1 + max(part.largest_user for part in lines.values())
    item_count = 1 + max(int(part.items.max()) for part in lines.values())
    if max(user_count, item_count) > MOST_ROWS:
        raise DataError(
            f"the largest id in {', '.join(map(str, files.values()))} is {max(user_count, item_count) - 1}, "
            f"above {MOST_ROWS - 1}, the limit of a catalogue up to the largest id; use catalogue 'occurring'"
        )
    user_ids, item_ids = IdMap.range(user_count), IdMap.range(item_count)
    return {
        name: Interactions.build(part.users, part.items, user_ids=user_ids, item_ids=item_ids)
        for name, part in lines.items()
    }
