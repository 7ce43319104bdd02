"""Fetching a file over HTTP that is either complete or absent, with what the standard library brings.

A transfer that breaks off is taken up where it stopped if the server can do that and the file did not change
meanwhile, else from the start. What cannot be mended (a missing page, a foreign protocol) is not tried again.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
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


@dataclass
class _Partial:
    """What has arrived so far, and how to ask for the rest of that very file."""

    path: Path
    size: int = 0
    validator: str | None = None  # ETag or date; without one nobody knows whether the file is still the same

    def restart(self) -> None:
        self.size, self.validator = 0, None


def fetch(
    url: str,
    target: Path,
    *,
    patience: Patience | None = None,
    progress: Progress = lambda done, total: None,
    say: Callable[[str], None] = lambda message: None,
) -> None:
    """Fetch `url` into the new file `target`; on any failure, also Ctrl-C, there is no such file."""
    patience = patience or Patience()
    _check_protocol(url)
    partial = _Partial(target)
    complete = False
    try:
        for attempt in range(patience.retries + 1):
            try:
                _transfer(url, partial, patience.stall_seconds, progress)
                complete = True
                return
            except _TransferError as problem:
                if attempt == patience.retries:
                    tries = f" ({attempt + 1} times)" if attempt else ""
                    raise DownloadError(
                        f"could not fetch {url}: {problem}{tries}; try again later, or fetch it by hand and use --from"
                    ) from problem
                pause = min(patience.first_pause * 2**attempt, LONGEST_PAUSE)
                say(f"{problem}; trying again in {pause:g} s")
                patience.sleep(pause)
    finally:
        if not complete:
            target.unlink(missing_ok=True)


def _transfer(url: str, partial: _Partial, stall_seconds: float, progress: Progress) -> None:
    with _open(url, partial, stall_seconds) as response:
        if response.status == http.HTTPStatus.PARTIAL_CONTENT and not _continues(response, partial):
            partial.restart()
            raise _TransferError("the server continued another file or at another place")
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            partial.restart()
        partial.validator = _validator(response.headers)
        length = _content_length(response.headers)
        total = None if length is None else partial.size + length
        if total is not None and total > LARGEST_DOWNLOAD:
            raise _too_large(url)
        _copy(response, partial, url, stall_seconds, progress, total)
    if total is not None and partial.size != total:
        raise _TransferError(f"the transfer ended after {partial.size:,} of {total:,} bytes")


def _open(url: str, partial: _Partial, stall_seconds: float) -> Any:
    headers = {"User-Agent": f"caged/{__version__}", "Accept-Encoding": "identity"}
    if partial.size and partial.validator:
        headers |= {"Range": f"bytes={partial.size}-", "If-Range": partial.validator}
    opener = urllib.request.build_opener(_Redirects())
    try:
        return opener.open(urllib.request.Request(url, headers=headers), timeout=stall_seconds)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(url, error, partial) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise DownloadError(
                f"could not fetch {url}: the server's certificate is not valid ({error.reason.verify_message}); check "
                f"the clock and the network, or fetch it by hand and use --from"
            ) from error
        raise _TransferError(_in_words(error.reason, stall_seconds)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _TransferError(_in_words(error, stall_seconds)) from error


def _refused(url: str, error: urllib.error.HTTPError, partial: _Partial) -> Exception:
    if error.code in WORTH_ANOTHER_TRY:
        return _TransferError(f"the server answered {error.code} {error.reason}")
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and partial.size:
        partial.restart()
        return _TransferError("the server could not go on where the transfer stopped")
    if 300 <= error.code < 400:
        _check_protocol(urllib.parse.urljoin(url, error.headers.get("Location", "")))
        return DownloadError(
            f"could not fetch {url}: it redirects without end (more than {MOST_REDIRECTS} times or to nowhere); fetch "
            f"it by hand and use --from"
        )
    return DownloadError(
        f"could not fetch {url}: the server answered {error.code} {error.reason}; the file may have moved, fetch it "
        f"by hand and use --from"
    )


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = MOST_REDIRECTS
    max_repeats = MOST_REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        _check_protocol(newurl, secure=req.full_url.startswith("https:"))
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _check_protocol(url: str, *, secure: bool = False) -> None:
    allowed = ("https",) if secure else ("https", "http")
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme not in allowed:
        raise DownloadError(f"will not fetch {url}: its protocol is '{scheme}', allowed here: {' and '.join(allowed)}")


def _copy(
    response: Any, partial: _Partial, url: str, stall_seconds: float, progress: Progress, total: int | None
) -> None:
    """Append what arrives; `partial.size` counts the bytes that are in the file."""
    try:
        with partial.path.open("r+b" if partial.size else "wb") as handle:
            if partial.size:
                handle.truncate(partial.size)
                handle.seek(partial.size)
            progress(partial.size, total)
            while chunk := _next_chunk(response, stall_seconds):
                if partial.size + len(chunk) > LARGEST_DOWNLOAD:
                    raise _too_large(url)
                handle.write(chunk)
                handle.flush()  # so that the count is right whenever the transfer breaks off
                partial.size += len(chunk)
                progress(partial.size, total)
    except OSError as error:  # of the disk: those of the network are a _TransferError by now
        raise RunError(
            f"could not write to {partial.path.parent}: {error.strerror or error}; free space or choose another place "
            f"with --out"
        ) from error


def _next_chunk(response: Any, stall_seconds: float) -> bytes:
    try:
        chunk: bytes = response.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _TransferError(_in_words(error, stall_seconds)) from error
    return chunk


def _in_words(error: object, stall_seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"the server fell silent for {stall_seconds:g} s"
    if isinstance(error, ConnectionRefusedError):
        return "the server refused the connection"
    if isinstance(error, socket.gaierror):
        return "the server's name could not be looked up (is there a network?)"
    if isinstance(error, http.client.IncompleteRead):
        return "the transfer ended early"
    return f"the connection failed ({error})"


def _continues(response: Any, partial: _Partial) -> bool:
    """Whether a partial answer starts where the last transfer stopped, in the same file."""
    answered = str(response.headers.get("Content-Range", ""))
    same = _validator(response.headers) in (None, partial.validator)
    return same and answered.startswith(f"bytes {partial.size}-")


def _validator(headers: Message) -> str | None:
    tag = headers.get("ETag")
    if tag and not tag.startswith("W/"):  # a weak tag does not promise equal bytes
        return str(tag)
    modified = headers.get("Last-Modified")
    return str(modified) if modified else None


def _content_length(headers: Message) -> int | None:
    with suppress(TypeError, ValueError):
        length = int(headers.get("Content-Length", ""))
        return length if length >= 0 else None
    return None


def _too_large(url: str) -> DownloadError:
    return DownloadError(
        f"will not fetch {url}: it is larger than {LARGEST_DOWNLOAD >> 30} GiB, more than any known dataset; fetch it "
        f"by hand and use --from"
    )
