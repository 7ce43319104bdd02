"""Fetching a file over HTTP that is either complete or absent, through pooch's downloader.

pooch transfers; what it does not know is added here: a transfer that breaks off is taken up where it stopped if the
server can do that and the file did not change meanwhile, else from the start. What cannot be mended (a missing page, a
foreign protocol) is not tried again.
"""

from __future__ import annotations

import http.client
import importlib
import socket
import ssl
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from caged._version import __version__
from caged.errors import DataError, RunError

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all where known

CHUNK = 1 << 16
MOST_REDIRECTS = 5
LARGEST_DOWNLOAD = 4 << 30  # bytes; no known dataset comes near it, a server that never ends would
LONGEST_PAUSE = 30.0
WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}


class DownloadError(DataError):
    """A file that could not be fetched."""


class _TransferError(Exception):
    """A transfer that may go better next time."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a silent server, how often to try again, how long to pause before (doubling each time)."""

    stall_seconds: float = 30.0
    retries: int = 3
    first_pause: float = 1.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)


def fetch(
    url: str,
    target: Path,
    *,
    patience: Patience | None = None,
    progress: Progress = lambda done, total: None,
    say: Callable[[str], None] = lambda message: None,
) -> None:
    """Fetch `url` into the new file `target`; on any failure, also Ctrl-C, there is no such file."""
    _check_protocol(url)
    try:
        with target.open("wb") as file:
            _try_patiently(_Transfer(url, file, progress), patience or Patience(), say)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):  # of the disk: those of the network are a DownloadError by now
            raise RunError(
                f"could not write to {target.parent}: {error.strerror or error}; free space or choose another place "
                f"with --out"
            ) from error
        raise


def _try_patiently(transfer: _Transfer, patience: Patience, say: Callable[[str], None]) -> None:
    for attempt in range(patience.retries + 1):
        try:
            transfer.run(patience.stall_seconds)
            return
        except _TransferError as problem:
            if attempt == patience.retries:
                tries = f" ({attempt + 1} times)" if attempt else ""
                raise DownloadError(
                    f"could not fetch {transfer.url}: {problem}{tries}; try again later, or fetch it by hand and use "
                    f"--from"
                ) from problem
            pause = min(patience.first_pause * 2**attempt, LONGEST_PAUSE)
            say(f"{problem}; trying again in {pause:g} s")
            patience.sleep(pause)


class _Transfer:
    """One file on its way: what pooch writes to, and the judge of every answer of the server."""

    def __init__(self, url: str, file: IO[bytes], progress: Progress) -> None:
        self.url, self.file, self.progress = url, file, progress
        self.size = 0  # bytes in the file
        self.total: int | None = None  # bytes in all, where the server says it
        self.validator: str | None = None  # ETag or date; without one nobody knows whether the file is still the same
        self.redirects = 0

    def run(self, stall_seconds: float) -> None:
        headers = {"User-Agent": f"caged/{__version__}", "Accept-Encoding": "identity"}
        if self.size and self.validator:
            headers |= {"Range": f"bytes={self.size}-", "If-Range": self.validator}
        self.redirects = 0
        pooch, requests = _package("pooch"), _package("requests")
        download = pooch.HTTPDownloader(
            chunk_size=CHUNK, timeout=stall_seconds, headers=headers, hooks={"response": self.judge}
        )
        try:
            download(self.url, self, None)
        except (requests.RequestException, ValueError) as error:  # pooch stumbles over a length that is no number
            raise self._broken_off(error, stall_seconds) from error
        if self.total is not None and self.size < self.total:  # urllib3 before 2.0 does not say so
            raise _TransferError(f"the transfer ended after {self.size:,} of {self.total:,} bytes")

    def judge(self, response: Any, **_: object) -> None:
        """Look at the head of an answer, before its body is read or its redirect followed."""
        code = response.status_code
        if 300 <= code < 400:
            self._check_redirect(response)
            return
        if code >= 400:
            raise self._refused(code, response.reason)
        if code != HTTPStatus.PARTIAL_CONTENT:
            self._restart()
        elif not self._is_continued_by(response.headers):
            self._restart()
            raise _TransferError("the server continued another file or at another place")
        self.validator = _validator(response.headers)
        length = response.headers.get("Content-Length", "")
        self.total = self.size + int(length) if length.isdecimal() else None
        self._check_size(self.total or 0)
        self.progress(self.size, self.total)

    def write(self, chunk: bytes) -> None:
        """What pooch calls with everything that arrives, and flushes."""
        self._check_size(self.size + len(chunk))
        self.file.write(chunk)
        self.size += len(chunk)

    def flush(self) -> None:
        self.file.flush()  # so that the count is right whenever the transfer breaks off
        self.progress(self.size, self.total)

    def _restart(self) -> None:
        if self.size:
            self.file.seek(0)
            self.file.truncate()
        self.size, self.validator = 0, None

    def _check_size(self, size: int) -> None:
        if size > LARGEST_DOWNLOAD:
            raise DownloadError(
                f"will not fetch {self.url}: it is larger than {LARGEST_DOWNLOAD >> 30} GiB, more than any known "
                f"dataset; fetch it by hand and use --from"
            )

    def _check_redirect(self, response: Any) -> None:
        self.redirects += 1
        target = urllib.parse.urljoin(response.url, response.headers.get("Location", ""))
        _check_protocol(target, secure=response.url.startswith("https:"))
        if self.redirects > MOST_REDIRECTS or not response.is_redirect:
            raise DownloadError(
                f"could not fetch {self.url}: it redirects without end (more than {MOST_REDIRECTS} times or to "
                f"nowhere); fetch it by hand and use --from"
            )

    def _refused(self, code: int, reason: str) -> Exception:
        if code in WORTH_ANOTHER_TRY:
            return _TransferError(f"the server answered {code} {reason}")
        if code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and self.size:
            self._restart()
            return _TransferError("the server could not continue where the transfer stopped")
        return DownloadError(
            f"could not fetch {self.url}: the server answered {code} {reason}; the file may have moved, fetch it by "
            f"hand and use --from"
        )

    def _is_continued_by(self, headers: Mapping[str, str]) -> bool:
        """Whether a partial answer starts where the last transfer stopped, in the same file."""
        same = _validator(headers) in (None, self.validator)
        return same and headers.get("Content-Range", "").startswith(f"bytes {self.size}-")

    def _broken_off(self, error: Exception, stall_seconds: float) -> Exception:
        """The reason lies somewhere below what urllib3 and requests have wrapped it in."""
        for cause in _causes(error):
            if isinstance(cause, ssl.SSLCertVerificationError):
                return DownloadError(
                    f"could not fetch {self.url}: the server's certificate is not valid ({cause.verify_message}); "
                    f"check the clock and the network, or fetch it by hand and use --from"
                )
            if (reason := self._in_words(cause, stall_seconds)) is not None:
                return _TransferError(reason)
        return _TransferError(f"the connection failed ({error})")

    def _in_words(self, cause: BaseException, stall_seconds: float) -> str | None:
        match cause:
            case TimeoutError():
                return f"the server fell silent for {stall_seconds:g} s"
            case ConnectionRefusedError():
                return "the server refused the connection"
            case socket.gaierror():
                return "the server's name could not be looked up (is there a network?)"
            case http.client.IncompleteRead(expected=int(missing)) if self.total is not None:
                return f"the transfer ended after {self.total - missing:,} of {self.total:,} bytes"
            case http.client.IncompleteRead():
                return "the transfer ended early"
        return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DownloadError(
            f"downloading a dataset needs the package {name}, which is not installed; install it with: pip install "
            f"'caged-rec[data]', or fetch the files by hand and use --from"
        ) from error


def _check_protocol(url: str, *, secure: bool = False) -> None:
    allowed = ("https",) if secure else ("https", "http")
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme not in allowed:
        raise DownloadError(f"will not fetch {url}: its protocol is '{scheme}', allowed here: {' and '.join(allowed)}")


def _validator(headers: Mapping[str, str]) -> str | None:
    tag = headers.get("ETag")
    if tag and not tag.startswith("W/"):  # a weak tag does not promise equal bytes
        return tag
    return headers.get("Last-Modified")
