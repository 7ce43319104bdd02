"""The bytes of a text file, decompressed and checked, in pieces or as a stream."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from caged.errors import DataError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CHUNK = 1 << 24  # bytes


def text_chunks(path: Path) -> Iterator[bytes]:
    """The file piece by piece, decompressed if it ends in .gz, checked to be UTF-8 text, without a byte order mark."""
    check = _Utf8Check(path)
    try:
        with _opened(path) as handle:
            chunk = handle.read(CHUNK).removeprefix(BYTE_ORDER_MARK)
            while chunk:
                check(chunk)
                yield chunk
                chunk = handle.read(CHUNK)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged or truncated gzip file ({error}); fetch or write it again") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}; check the path and its rights") from error
    check(b"", final=True)


def _opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


class _Utf8Check:
    """Also where bytes are in columns that nobody asked for: a wrong encoding should not surface later, elsewhere."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.position = 0

    def __call__(self, chunk: bytes, *, final: bool = False) -> None:
        pending = self.decoder.getstate()[0]  # the beginning of a character that the last chunk cut in two
        if pending or final or not chunk.isascii():
            try:
                self.decoder.decode(chunk, final)
            except UnicodeDecodeError as error:
                seen = (pending + chunk)[error.start]
                raise DataError(
                    f"{self.path} is not UTF-8 text: byte 0x{seen:02x} at position "
                    f"{self.position - len(pending) + error.start}; "
                    f"convert it, for example with: iconv -f latin1 -t utf-8 "
                    f"(a compressed or binary file needs its proper suffix)"
                ) from error
        if b"\0" in chunk:
            raise DataError(
                f"{self.path} is not text: it holds a NUL byte at position {self.position + chunk.index(0)}; "
                f"save it as UTF-8 text, or give a binary file its proper suffix"
            )
        self.position += len(chunk)


class ChunkStream(io.RawIOBase):
    """Pieces of bytes as a file to read from once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
