"""Numpy arrays that grow on disk, and their memory maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from caged.data.ids import Array


class GrowingArray:
    """A one-dimensional `.npy` file that is written piece by piece; complete once it is closed.

    numpy leaves room in the header for a longer shape, so that the header can be written again at the end.
    """

    def __init__(self, path: Path, kind: Any) -> None:
        self.path, self.kind = path, np.dtype(kind)
        self.length = 0
        self._file: BinaryIO = path.open("wb")
        self._write_header()
        self._begin = self._file.tell()

    def append(self, values: Array) -> None:
        np.ascontiguousarray(values, dtype=self.kind).tofile(self._file)
        self.length += len(values)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        assert self._file.tell() == self._begin  # else the header would have overwritten values
        self._file.close()

    def _write_header(self) -> None:
        described = {"descr": np.lib.format.dtype_to_descr(self.kind), "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(self._file, described)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def mapped(path: Path) -> Array:
    """The array without reading it; an empty file cannot be mapped, so an empty array is read."""
    array = np.load(path, mmap_mode=None if path.stat().st_size <= EMPTY_BYTES else "r", allow_pickle=False)
    return np.asarray(array)


EMPTY_BYTES = 128  # of a `.npy` file without values


def offsets_of(counts: Array) -> Array:
    """Where each row begins, and the end of the last.

    >>> offsets_of(np.array([2, 0, 1])).tolist()
    [0, 2, 2, 3]
    """
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def user_blocks(offsets: Array, most: int) -> list[tuple[int, int]]:
    """Ranges [first, last) of users with at most `most` pairs together; a user with more is a block alone.

    >>> user_blocks(np.array([0, 2, 3, 9, 10]), 4)
    [(0, 2), (2, 3), (3, 4)]
    """
    blocks, first, users = [], 0, len(offsets) - 1
    while first < users:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = min(max(last, first + 1), users)
        blocks.append((first, last))
        first = last
    return blocks
