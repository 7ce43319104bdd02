"""What `--data` takes: a known dataset, a log (a file, part files, or what `caged data import` wrote), or a split."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caged.data.cgraph.layout import SUFFIX, is_graph_folder
from caged.data.cgraph.reading import open_graph
from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.known import DATASETS, Dataset, dataset_in, dataset_named, folder_of
from caged.data.known.layouts import Layout, find_file, suffix_decides
from caged.data.matching import check_kinds, check_overlap
from caged.data.parts import NOT_LIKED, NOT_LIKED_BEFORE, PARTS
from caged.data.readers.canonical import is_canonical
from caged.data.readers.columns import Column, Columns, IdsAs, ids_of
from caged.data.readers.files import DEFAULT_COLUMNS, READERS, read_part, reader_for, suffix_of, validate_log
from caged.data.readers.folders import holds_split, part_files, read_part_files
from caged.data.readers.text import parse_lightgcn, read_lightgcn
from caged.data.shown import SOURCE
from caged.errors import DataError, unknown

Catalogue = Literal["occurring", "max_id"]

_log = logging.getLogger(__name__)

MOST_ROWS = 10**8  # of a catalogue 0..largest id: beyond it one stray id would fill the memory

ITEM_TABLE = "items.parquet"


@dataclass(frozen=True, eq=False)
class Source:
    """Either one `log`, or the `parts` of a given split with shared id maps: train, test and perhaps valid, and perhaps
    test_negative and valid_negative, what was shown at random and not liked.

    Some datasets have further tests beside `test`; they share the id maps too. `dropped` counts, per part, the pairs
    that were taken out because train holds them as well. `notes` are sentences for whoever uses the data.
    """

    name: str  # of the dataset, file or folder, for paths of results
    path: Path
    log: Interactions | None = None
    parts: Mapping[str, Interactions] | None = None
    extra_tests: Mapping[str, Interactions] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    dataset: Dataset | None = None  # the row of the table, for a known dataset
    listed_items: IdMap | None = None  # of the item table in a folder with parts

    @property
    def contents(self) -> dict[str, Interactions]:
        """Everything that is there by name: `log`, or the parts and then the further tests."""
        return {"log": self.log} if self.log is not None else {**(self.parts or {}), **self.extra_tests}

    @property
    def positives(self) -> dict[str, Interactions]:
        """The same without what was shown and not liked: nobody chose these pairs."""
        return {name: part for name, part in self.contents.items() if name not in (NOT_LIKED, NOT_LIKED_BEFORE)}


def load(
    source: str | Path,
    *,
    columns: Columns = DEFAULT_COLUMNS,
    min_rating: float | None = None,
    catalogue: Catalogue = "occurring",
) -> Source:
    """Read a known dataset (a name), a log (a file, a folder of part files, or what `caged data import` wrote), or a
    folder with train and test files (and perhaps valid, test_negative and valid_negative). A `.cgraph` folder is
    opened and not read.

    The catalogue are the users and items that occur in any part, and the items of `items.parquet` where a folder with
    parts has one. `catalogue="max_id"`, for LightGCN text only, makes
    it 0..largest id instead, gaps included. A name wins over a file of that name; write ./name for the file. A folder
    that has the name and the files of a known dataset is read as that dataset.
    """
    if catalogue not in ("occurring", "max_id"):
        raise DataError(unknown("catalogue", str(catalogue), ("occurring", "max_id")))
    if isinstance(source, str) and source in DATASETS:
        known = DATASETS[source]
        return load_dataset(known, folder_of(known), columns=columns, min_rating=min_rating, catalogue=catalogue)
    name, path = _located(source)
    recognised = dataset_in(path) if path.is_dir() else None
    if recognised is not None:
        return load_dataset(recognised, path, columns=columns, min_rating=min_rating, catalogue=catalogue)
    if is_graph_folder(path):
        return _graph_source(name, path, columns, min_rating, catalogue)
    in_parts = holds_part_files(path)
    is_split = path.is_dir() and not is_canonical(path) and not in_parts
    files = _part_files(path) if is_split else {"log": path}
    listed = _listed_items(path / ITEM_TABLE, columns.ids) if is_split and catalogue == "occurring" else None
    if catalogue == "max_id":
        contents = _read_up_to_max_id(files, columns, min_rating)
    else:
        read = read_part_files if in_parts else read_part
        contents = _read_occurring(
            files,
            lambda part, file: read(
                file, columns=_columns_of(part, columns, files), min_rating=_min_rating_of(part, min_rating)
            ),
            listed=listed,
        )
    whole = next(iter(contents.values()))  # any of them: they share the catalogue
    validate_log(whole, str(path))
    if not is_split:
        return Source(name, path, log=whole, notes=whole.notes)
    notes = (*_notes_of_parts(contents), *check_overlap(contents["train"], contents))
    return Source(name, path, parts=contents, notes=notes, listed_items=listed)


def _graph_source(name: str, path: Path, columns: Columns, min_rating: float | None, catalogue: Catalogue) -> Source:
    """What `caged data import` wrote to a folder NAME.cgraph: its parts, mapped into memory."""
    if catalogue == "max_id":
        raise _no_max_id(path)
    opened = open_graph(path, columns=columns, min_rating=min_rating)
    notes = (*opened.manifest["notes"], *check_overlap(opened.parts["train"], opened.parts))
    return Source(name, path, parts=opened.parts, notes=notes)


def load_dataset(
    dataset: Dataset,
    folder: Path,
    *,
    columns: Columns = DEFAULT_COLUMNS,
    min_rating: float | None = None,
    catalogue: Catalogue = "occurring",
) -> Source:
    """A known dataset out of the folder that holds its files in one of its forms."""
    found = dataset.find(folder)
    if found is None:
        raise DataError(f"{folder} is not a folder of dataset '{dataset.name}'; it needs {dataset.wanted_files}")
    layout, files = found
    if catalogue == "max_id":
        if layout.read is not suffix_decides:
            raise _no_max_id(next(iter(files.values())))
        contents = _read_up_to_max_id(files, columns, min_rating)
    else:
        merged = layout.columns_with(columns)
        read_as = None if dataset.liked_from is not None else min_rating  # what is not liked is needed too
        contents = _read_occurring(files, lambda _, file: layout.read(file, merged, read_as))
    validate_log(next(iter(contents.values())), str(folder))
    dropped = _drop_overlap(contents) if dataset.drops_overlap else {}
    if dataset.liked_from is not None:
        contents = _liked_and_not(contents, dataset.liked_from if min_rating is None else min_rating, str(folder))
    notes = (*_notes(dataset, dropped), *layout.remark(files, min_rating), *_notes_of_parts(contents))
    if min_rating is None and columns.ids == "auto":  # text ids stand in another order, so checksums differ
        notes = (*notes, *_unlike_published(dataset, contents))
    return Source(
        dataset.name,
        folder,
        log=contents.pop("log", None),
        parts={part: contents[part] for part in PARTS if part in contents} or None,
        extra_tests={part: pairs for part, pairs in contents.items() if part not in PARTS},
        dropped=dropped,
        notes=notes,
        dataset=dataset,
    )


def dataset(name: str, *, columns: Columns = DEFAULT_COLUMNS, min_rating: float | None = None) -> Interactions:
    """All interactions of a known dataset as one log; parts of a given split are put together, but for what was shown
    at random and not liked.

    `caged.data.load` keeps the parts apart, `caged data list` shows the names.
    """
    known = dataset_named(name)
    source = load_dataset(known, folder_of(known), columns=columns, min_rating=min_rating)
    for note in source.notes:
        _log.warning(note)
    if source.log is not None:
        return source.log
    return Interactions.joined(list(source.positives.values()))


def item_titles(name: str) -> pa.Table:
    """The titles of a dataset's items: a table (item_id, title), also with items that nobody interacted with."""
    known = dataset_named(name)
    known = dataset_named(known.titles_of) if known.titles_of else known
    folder = folder_of(known)
    found = known.find(folder)
    titles = found[0].titles if found else None
    if titles is None:
        named = [row.name for row in DATASETS.values() if row.titles_of or any(form.titles for form in row.layouts)]
        raise DataError(f"dataset '{name}' has no titles; datasets with titles: {', '.join(named)}")
    path = find_file(folder, titles.file)
    if path is None:
        raise DataError(f"{folder} lacks {titles.file}, which holds the titles of '{name}'; fetch the dataset again")
    return titles.read(path)


def _notes_of_parts(contents: Mapping[str, Interactions]) -> tuple[str, ...]:
    """What was odd when the files were read; a log needs no name for its only part."""
    return tuple(note if name == "log" else f"{name}: {note}" for name, part in contents.items() for note in part.notes)


def _drop_overlap(contents: dict[str, Interactions]) -> dict[str, int]:
    """Take the pairs of train out of test; how many there were."""
    train, test = contents["train"], contents["test"]
    kept = ~np.isin(test.keys, train.keys, assume_unique=True)
    contents["test"] = test.select(kept)
    return {"test": int(np.count_nonzero(~kept))}


def _liked_and_not(contents: Mapping[str, Interactions], least: float, where: str) -> dict[str, Interactions]:
    """Of rated parts: only what is rated `least` or more was liked; of test, the rest was shown and not liked.

    Users and items keep their rows, so that what nobody liked stays in the catalogue.
    """
    liked = {name: _rated(part, where) >= least for name, part in contents.items()}
    for name in contents:
        if not liked[name].any():
            raise DataError(f"no {name} pair of {where} is rated {least:g} or more; lower --min-rating")
    parts = {name: part.select(liked[name]) for name, part in contents.items()}
    not_liked = contents["test"].select(~liked["test"])
    return {**parts, NOT_LIKED: not_liked} if len(not_liked) else parts


def _rated(part: Interactions, where: str) -> Array:
    if part.rating is None:
        raise DataError(f"{where} has no ratings, which say what was liked; restore its files")
    return part.rating


def _columns_of(part: str, columns: Columns, files: Mapping[str, Path]) -> Columns:
    """Marks such as `source` choose what to validate on; a test part is never filtered and need not have them.

    Beside what was shown at random and not liked, they also say which of the test pairs were shown at random; of the
    validation pairs too, which may yet have to be taken from train.
    """
    if NOT_LIKED_BEFORE in files and part in ("train", "valid", NOT_LIKED_BEFORE):
        asked_for = columns.keep and part != NOT_LIKED_BEFORE
        return columns if asked_for else columns.keeping_if_there(SOURCE)
    if part not in ("test", NOT_LIKED):
        return columns
    if NOT_LIKED in files:
        return columns.keeping_if_there(SOURCE)
    return replace(columns, keep_if_there=True) if columns.keep else columns


def _min_rating_of(part: str, min_rating: float | None) -> float | None:
    """What was not liked may be rated as low as it is."""
    return None if part in (NOT_LIKED, NOT_LIKED_BEFORE) else min_rating


def _notes(dataset: Dataset, dropped: Mapping[str, int]) -> tuple[str, ...]:
    partial = (f"{dataset.name} is a part of its dataset: {dataset.partial}",) if dataset.partial else ()
    overlap = tuple(
        f"{count:,} of the {part} pairs are in train too and were taken out of {part}"
        for part, count in dropped.items()
        if count
    )
    return (*partial, *dataset.notes, *overlap)


def _unlike_published(dataset: Dataset, contents: Mapping[str, Interactions]) -> tuple[str, ...]:
    different = unlike_published(dataset, contents)
    if not different:
        return ()
    return (f"the {' and '.join(different)} pairs are not the published ones of {dataset.name}: its files differ",)


def unlike_published(dataset: Dataset, contents: Mapping[str, Interactions]) -> list[str]:
    """The parts whose checksum is another than the table's."""
    return [part for part, pairs in contents.items() if pairs.fingerprint != dataset.fingerprints[part]]


def source_name(source: str | Path) -> str:
    """What paths of results call a dataset, a file or a folder, whether it is here or not."""
    if isinstance(source, str) and source in DATASETS:
        return source
    path = Path(source)
    recognised = dataset_in(path) if path.is_dir() else None
    return _name_of(path) if recognised is None else recognised.name


def _name_of(path: Path) -> str:
    name = path.name if path.name not in {"", ".."} else path.resolve().name
    suffix = None if path.is_dir() else suffix_of(path)
    return name[: len(name) - len(suffix or "")].removesuffix(SUFFIX)


def _located(source: str | Path) -> tuple[str, Path]:
    path = Path(source)
    if isinstance(source, str) and path.name == source and suffix_of(path) is None and not path.exists():
        raise DataError(f"{unknown('dataset', source, DATASETS)}; a file or folder of that name does not exist either")
    return _name_of(path), path


def holds_part_files(path: Path) -> bool:
    """Whether a folder holds the part files of one log: all of one kind, and not the files of a split."""
    if not path.is_dir() or is_canonical(path) or holds_split(path):
        return False
    try:
        return bool(part_files(path))
    except DataError:
        return False


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
            f"a folder needs train and test (and may have valid, test_negative and valid_negative) as .txt, .csv, .tsv "
            f"or .parquet, or the part files of one log, all with the same suffix"
        )
    return files


def _read_occurring(
    files: Mapping[str, Path], read: Callable[[str, Path], Interactions], *, listed: IdMap | None = None
) -> dict[str, Interactions]:
    parts = {part: read(part, path) for part, path in files.items()}
    if "train" in parts:
        check_kinds(parts["train"], parts, listed)
    user_ids = IdMap.union(part.user_ids for part in parts.values())
    item_ids = IdMap.union([*(part.item_ids for part in parts.values()), *([] if listed is None else [listed])])
    return {name: part.reindexed(user_ids, item_ids) for name, part in parts.items()}


def _listed_items(path: Path, ids: IdsAs) -> IdMap | None:
    """The items of an item table: they are in the catalogue even if nobody has interacted with them yet."""
    if not path.is_file():
        return None
    try:
        return IdMap.of(ids_of(Column(pq.read_table(path, columns=["item_id"])["item_id"], "item_id", str(path)), ids))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, KeyError) as error:
        raise DataError(
            f"{path} is not an item table ({error}); it needs a column item_id, repair it or move it away"
        ) from error


def check_max_id(source: str) -> None:
    """Refuse what cannot have a catalogue up to its largest id, as far as that shows without reading it."""
    path = Path(source)
    known = DATASETS[source] if source in DATASETS else dataset_in(path) if path.is_dir() else None
    if known is not None:
        fits = any(map(_is_lightgcn_text, known.layouts))
    else:
        fits = not path.exists() or all((path / f"{part}.txt").is_file() for part in ("train", "test"))
    if not fits:
        raise _no_max_id(source)


def _is_lightgcn_text(layout: Layout) -> bool:
    return layout.read is suffix_decides and {Path(name).suffix for name in layout.files.values()} == {".txt"}


def _no_max_id(path: Path | str) -> DataError:
    return DataError(
        f"{path} cannot have a catalogue up to its largest id, as protocol 'paper' has it: that needs a folder with "
        f"train.txt and test.txt (LightGCN text), without column names, --ids text or a smallest rating; use protocol "
        f"'honest' (catalogue 'occurring')"
    )


def _read_up_to_max_id(
    files: Mapping[str, Path], columns: Columns, min_rating: float | None
) -> dict[str, Interactions]:
    for path in files.values():
        if (
            path.is_dir()
            or reader_for(path) is not read_lightgcn
            or columns != DEFAULT_COLUMNS
            or min_rating is not None
        ):
            raise _no_max_id(path)
    lines = {part: parse_lightgcn(path) for part, path in files.items()}
    user_count = 1 + max(part.largest_user for part in lines.values())
    item_count = 1 + max(int(part.items.max()) for part in lines.values())
    if max(user_count, item_count) > MOST_ROWS:
        raise DataError(
            f"the largest id in {', '.join(map(str, files.values()))} is {max(user_count, item_count) - 1}, "
            f"above {MOST_ROWS - 1}, the limit of a catalogue up to the largest id; use protocol 'honest' (catalogue "
            "'occurring')"
        )
    user_ids, item_ids = IdMap.range(user_count), IdMap.range(item_count)
    return {
        name: Interactions.build(part.users, part.items, user_ids=user_ids, item_ids=item_ids)
        for name, part in lines.items()
    }
