"""What a row of the table of known datasets says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from caged.data.known.layouts import Layout


@dataclass(frozen=True)
class PlainFile:
    """A file to fetch and the name it gets in the dataset's folder."""

    url: str
    name: str


@dataclass(frozen=True)
class Archive:
    """A zip or tar archive to fetch, and the files to take out of it, whatever folder they lie in there."""

    url: str
    names: tuple[str, ...]
    optional: tuple[str, ...] = ()  # taken where they are there

    @property
    def file_name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Home:
    """Where a dataset is public. Without downloads it has to be fetched by hand."""

    page: str
    downloads: tuple[PlainFile | Archive, ...] = ()
    verified: date | None = None

    @property
    def status(self) -> str:
        return f"verified: {self.verified or 'none'}"


@dataclass(frozen=True)
class Dataset:
    """A row of the table. Users, items and interactions are those of the published files."""

    name: str
    title: str
    folder: str
    layouts: tuple[Layout, ...]
    users: int
    items: int
    interactions: int
    fingerprints: Mapping[str, str]  # part -> SHA-256 of its sorted pairs, as `caged.data.load` gives them
    terms: str
    citation: str
    home: Home | None = None
    partial: str | None = None  # what is missing; None: complete
    drops_overlap: bool = False  # whether pairs of train that are in test too are taken out of test
    notes: tuple[str, ...] = ()  # what everybody who loads it should know
    titles_of: str | None = None  # the dataset that names its items

    @property
    def can_be_downloaded(self) -> bool:
        return self.home is not None and bool(self.home.downloads)

    def find(self, folder: Path) -> tuple[Layout, dict[str, Path]] | None:
        """The first of its forms whose files are all in `folder`, and these files."""
        for layout in self.layouts:
            files = layout.find(folder)
            if files is not None:
                return layout, files
        return None

    @property
    def wanted_files(self) -> str:
        """The files of each form in words."""
        return " or ".join(" and ".join(layout.files.values()) for layout in self.layouts)
