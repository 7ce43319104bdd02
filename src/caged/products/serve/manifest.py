"""What a serving artefact is: a folder that answers requests without torch, without pickle and without the run.

manifest.json         format, method, counts, checksums, where it comes from, what the audit said, what the knob costs
users.arrow           user_id, in the order of the rows
items.arrow           item_id, degree, and title and attributes where the data has them
user_vectors.npy      (M, K) float32, or bfloat16 as uint16
item_vectors.npy      (N, K)
user_spread.npy       (M,) float32: standard deviation of a user's scores, for the knob
seen_offsets.npy, seen_items.npy     what each user has had: items[offsets[u]:offsets[u + 1]]
seen_trained.npy      bool, beside seen_items: whether the vectors come from it; what validated them they do not
fold_table.npy, fold_weights.npy     a vector for new people, see `models/fold_in.py`; absent where there is none
user_lengths.npy      (M,) float32: before they were made 1, where scores are cosines
item_weights.npy      (N, N) float32: methods that score by item-item weights instead of vectors (ease)
neighbours.npy, similarities.npy     (N, k): the same for neighbours (itemknn)
item_moments.npy      (1 + K, K) float64: sums over the item vectors, see `moments.py`
index.faiss, index_head.npy          of large catalogues: an index over the item vectors, see `index.py`

Arrays and tables are memory-mapped. Every file has its SHA-256 in the manifest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from caged.errors import RunError
from caged.files import read_json

FORMAT = 1
MANIFEST = "manifest.json"
THREADS = 4  # that read files for their checksums
Kind = Literal["vectors", "item_weights", "neighbours"]


@dataclass(frozen=True)
class FoldInAs:
    """Where a vector for a new person comes from, beside the two arrays."""

    exponent: float
    by_cosine: bool
    note: str = ""


@dataclass(frozen=True)
class Notch:
    """Of the knob: how many lists of the index are read there, and how much of the exact lists that finds."""

    less_popular: float
    probes: int
    recall: float


@dataclass(frozen=True)
class IndexAs:
    """How an index was built, and what was measured then."""

    library: str
    lists: int
    head: int  # items that are always looked at
    scale: float  # of the column of the knob
    k: int  # length of the lists whose recall was measured
    people: int  # on whom it was measured
    notches: tuple[Notch, ...]  # the knob ascending

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> IndexAs:
        return cls(**{**values, "notches": tuple(Notch(**one) for one in values["notches"])})


@dataclass(frozen=True)
class Manifest:
    method: str
    kind: Kind
    users: int
    items: int
    width: int  # of the vectors; 0 where there are none
    dtype: Literal["float32", "bfloat16"]
    less_popular: float  # where the knob stands unless a request says otherwise: the strength of an adjusted run, or 0
    fold_in: FoldInAs | None
    fold_in_refused: str  # why there is no fold-in, else empty
    attributes: Mapping[str, str]  # column of items.arrow -> its type in words
    origin: Mapping[str, Any]  # dataset, seed, protocol, specification, versions, fingerprints
    audit: Mapping[str, Any]  # verdict and metrics of the run
    price: Mapping[str, Any]  # of each notch of the knob, by part; empty where it was not measured
    files: Mapping[str, str] = field(default_factory=dict)  # name -> SHA-256
    index: IndexAs | None = None  # None: search is exact

    def to_json(self) -> dict[str, Any]:
        nested = {name: getattr(self, name) for name in ("fold_in", "index")}
        return {
            "format": FORMAT,
            **vars(self),
            **{name: None if value is None else asdict(value) for name, value in nested.items()},
        }

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        where = folder / MANIFEST
        if not where.is_file():
            raise RunError(f"{folder} is no artefact (it has no {MANIFEST}); make one with caged export artefact RUN")
        values = read_json(where)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise RunError(f"{where} has another format than {FORMAT}; export the run again with this version")
        values.setdefault("index", None)  # artefacts of older versions have none
        lacking = [one.name for one in fields(cls) if one.name not in values]
        if lacking:
            raise RunError(f"{where} lacks '{lacking[0]}'; export the run again")
        stated = {one.name: values[one.name] for one in fields(cls)}
        fold_in = None if stated["fold_in"] is None else FoldInAs(**stated["fold_in"])
        index = None if stated["index"] is None else IndexAs.from_json(stated["index"])
        return cls(**{**stated, "fold_in": fold_in, "index": index})

    def check_files(self, folder: Path) -> None:
        """Every file is there and has its checksum; one that was changed is told by name."""
        for name in self.files:
            if not (folder / name).is_file():
                raise RunError(f"{folder} lacks {name}; export the run again")
        # Largest first; hashlib works beside other threads.
        names = sorted(self.files, key=lambda name: -(folder / name).stat().st_size)
        with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
            for name, found in zip(names, pool.map(checksum, [folder / name for name in names]), strict=True):
                if found != self.files[name]:
                    where = folder / name
                    raise RunError(
                        f"{where} was changed since it was exported: it no longer has its checksum; export again"
                    )


def checksum(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
