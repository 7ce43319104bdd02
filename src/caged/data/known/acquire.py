"""Getting a known dataset into the data folder: downloaded or copied, checked by its pairs, then put in place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from caged.data.known.archives import extract
from caged.data.known.datasets import Archive, Dataset, PlainFile
from caged.data.known.download import Patience, Progress, fetch
from caged.data.source import Source, load_dataset, unlike_published
from caged.errors import DataError
from caged.files import new_folder


@dataclass(frozen=True)
class Reporter:
    """What is told meanwhile: `starting` a file, `progress` in it, and sentences to `say`."""

    starting: Callable[[str], None] = lambda url: None
    progress: Progress = lambda done, total: None
    say: Callable[[str], None] = lambda message: None


@dataclass(frozen=True)
class Supply:
    """Where the files come from, in words, and what puts them into a folder."""

    origin: str
    fill: Callable[[Path], None]


@dataclass(frozen=True, eq=False)
class Acquired:
    source: Source
    was_there: bool


def acquire(
    dataset: Dataset,
    root: Path,
    *,
    origin: Path | None = None,
    patience: Patience | None = None,
    reporter: Reporter | None = None,
) -> Acquired:
    """Put a dataset below `root`, from its public home or from `origin`, a local folder or archive.

    All of its files or nothing: whatever goes wrong, also Ctrl-C, no folder of its name appears.
    """
    target = root / dataset.folder
    if dataset.find(target) is not None:
        return Acquired(_already_there(dataset, target), was_there=True)
    if origin is not None:
        supply = local_supply(dataset, origin)
    else:
        supply = home_supply(dataset, patience or Patience(), reporter or Reporter())
    with new_folder(target) as temporary:
        supply.fill(temporary)
        source = _checked(dataset, temporary, supply.origin)
    return Acquired(replace(source, path=target), was_there=False)


def _already_there(dataset: Dataset, target: Path) -> Source:
    source = load_dataset(dataset, target)
    different = unlike_published(dataset, source.contents)
    if different:
        raise DataError(
            f"{target} is there already, but its {' and '.join(different)} pairs are not the published ones of "
            f"'{dataset.name}'; move it away or choose another --out"
        )
    return source


def local_supply(dataset: Dataset, origin: Path) -> Supply:
    """From `origin` itself, a folder of the dataset's name in it, or the archive that its home offers."""
    for place in (origin, origin / dataset.folder, origin / dataset.name):
        found = dataset.find(place)
        if found is not None:
            layout, files = found
            paths = [*files.values(), *layout.companions(place)]
            return Supply(str(place), partial(_copy, paths))
    archives = [download for download in _downloads(dataset) if isinstance(download, Archive)]
    if origin.is_file() and archives:
        return Supply(str(origin), partial(_unpack, origin, archives[0]))
    if not origin.exists():
        raise DataError(f"--from {origin} does not exist; give a folder with {dataset.wanted_files}")
    or_archive = f", or the archive {archives[0].file_name}" if archives else ""
    raise DataError(
        f"--from {origin} holds neither {dataset.wanted_files} (each may end in .gz) nor a folder {dataset.folder} "
        f"with them; give the folder that does{or_archive}"
    )


def home_supply(dataset: Dataset, patience: Patience, reporter: Reporter) -> Supply:
    """From the public home."""
    downloads = _downloads(dataset)
    if dataset.home is None or not downloads:
        page = f" (its page: {dataset.home.page})" if dataset.home else ""
        raise DataError(
            f"no download of '{dataset.name}' is known{page}; put {dataset.wanted_files} into a folder and run caged "
            f"data get {dataset.name} --from DIR, or set CAGED_DATA to the folder that holds {dataset.folder}/"
        )

    def fill(folder: Path) -> None:
        for download in downloads:
            reporter.starting(download.url)
            file = folder / (download.name if isinstance(download, PlainFile) else download.file_name)
            fetch(download.url, file, patience=patience, progress=reporter.progress, say=reporter.say)
            if isinstance(download, Archive):
                _unpack(file, download, folder)
                file.unlink()

    return Supply(" and ".join(download.url for download in downloads), fill)


def _downloads(dataset: Dataset) -> tuple[PlainFile | Archive, ...]:
    return dataset.home.downloads if dataset.home else ()


def _copy(paths: list[Path], folder: Path) -> None:
    for path in paths:
        try:
            source = path.open("rb")
        except OSError as error:  # else it would pass for a problem of the target
            raise DataError(f"cannot read {path}: {error.strerror or error}; check its rights") from error
        with source, (folder / path.name).open("wb") as target:
            shutil.copyfileobj(source, target)


def _unpack(file: Path, archive: Archive, folder: Path) -> None:
    extract(file, archive.names, folder, optional=archive.optional)


def _checked(dataset: Dataset, folder: Path, origin: str) -> Source:
    """The dataset in `folder`, which is temporary and therefore not named in errors; other pairs are an error."""
    try:
        source = load_dataset(dataset, folder)
    except DataError as error:
        seen = str(error).replace(f"{folder}/", "").replace(str(folder), "it")
        raise DataError(f"what came from {origin} is not dataset '{dataset.name}': {seen}") from error
    different = unlike_published(dataset, source.contents)
    if different:
        seen, expected = source.contents[different[0]].fingerprint, dataset.fingerprints[different[0]]
        raise DataError(
            f"what came from {origin} is not dataset '{dataset.name}': the checksum of its {different[0]} pairs is "
            f"{seen[:16]}..., expected {expected[:16]}..., and nothing was kept; get the files elsewhere and use --from"
        )
    return source
