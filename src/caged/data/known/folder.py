"""Where datasets lie: in folders below CAGED_DATA or, where that is not set, below a cache folder of the user."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from caged.arguments import instance
from caged.data.known.datasets import DATASETS, Dataset
from caged.errors import DataError, unknown

DATA_FOLDER_VARIABLE = "CAGED_DATA"


def data_folder() -> Path:
    """Where datasets lie: CAGED_DATA, else `caged/data` in the user's cache folder.

    That is XDG_CACHE_HOME or ~/.cache on Linux, ~/Library/Caches on macOS and LOCALAPPDATA on Windows.
    """
    chosen = os.environ.get(DATA_FOLDER_VARIABLE)
    return Path(chosen).expanduser() if chosen else _cache_folder() / "caged" / "data"


def _cache_folder() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    chosen = os.environ.get("XDG_CACHE_HOME")
    return Path(chosen) if chosen and Path(chosen).is_absolute() else Path.home() / ".cache"


def dataset_named(name: str) -> Dataset:
    if instance("name", name, str, "the name of a dataset") not in DATASETS:
        raise DataError(unknown("dataset", name, DATASETS))
    return DATASETS[name]


def dataset_in(folder: Path) -> Dataset | None:
    """The dataset that a folder is: it has the name and the files that the table says."""
    for dataset in DATASETS.values():
        if folder.absolute().name == dataset.folder and (found := dataset.find(folder)) is not None:
            layout, files = found
            return dataset if all(map(layout.looks_right, files.values())) else None
    return None


def folder_of(dataset: Dataset) -> Path:
    """The folder of a dataset that is here; an error that says how to get it otherwise."""
    folder = data_folder() / dataset.folder
    if dataset.find(folder) is None:
        raise DataError(absent(dataset, folder))
    return folder


def absent(dataset: Dataset, folder: Path) -> str:
    root = os.environ.get(DATA_FOLDER_VARIABLE)
    place = f"in {DATA_FOLDER_VARIABLE}={root}" if root else f"here and {DATA_FOLDER_VARIABLE} is not set"
    problem = f"it lacks {dataset.wanted_files}" if folder.is_dir() else f"there is no folder {folder}"
    fetch = f"run caged data get {dataset.name}" if dataset.can_be_downloaded else "fetch it by hand"
    return (
        f"dataset '{dataset.name}' is not {place}: {problem}; {fetch}, copy it with caged data get {dataset.name} "
        f"--from DIR, or export {DATA_FOLDER_VARIABLE}=DIR with the folder that holds {dataset.folder}/"
    )
