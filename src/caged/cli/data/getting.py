"""`caged data get`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from caged.cli.output import AsJson, Verbose, print_json, print_text, say, stderr
from caged.data.known import Dataset, data_folder, dataset_named
from caged.data.known.acquire import Reporter, acquire
from caged.data.known.download import Patience

PLAIN_SECONDS = 5.0  # between two lines where stderr is no terminal
DEFAULTS = Patience()


def get(
    name: Annotated[str, typer.Argument(help="Dataset name; see caged data list.")],
    origin: Annotated[
        Path | None,
        typer.Option("--from", help="Copy from here: the dataset's folder, the folder above it, or its archive."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Data folder to install into [default: CAGED_DATA, or your cache folder]."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Give up when a server is silent for this many seconds.")
    ] = DEFAULTS.stall_seconds,
    retries: Annotated[
        int, typer.Option(min=0, max=20, help="Retry a broken download this many times.")
    ] = DEFAULTS.retries,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Get a known dataset, check it, and put it where --data NAME finds it.

    Shows the terms first. Installs the files only if their pairs match the published checksum.

    Examples:

      caged data get gowalla

      caged data get ml-1m --from ~/Downloads/ml-1m.zip
    """
    dataset = dataset_named(name)
    _show_terms(dataset, downloads=origin is None)
    root = data_folder() if out is None else out
    patience = Patience(stall_seconds=timeout, retries=retries)
    with DownloadProgress() as shown:
        acquired = acquire(dataset, root, origin=origin, patience=patience, reporter=shown.reporter)
    source = acquired.source
    for note in source.notes:
        say(f"note: {note}")
    if as_json:
        parts = {
            part: {"interactions": len(pairs), "fingerprint": pairs.fingerprint}
            for part, pairs in source.contents.items()
        }
        print_json({"name": name, "folder": source.path, "was_there": acquired.was_there, "parts": parts})
        return
    sizes = ", ".join(f"{len(pairs):,} {part}" for part, pairs in source.contents.items())
    print_text(f"{name} {'was' if acquired.was_there else 'is'} in {source.path}: {sizes} pairs, the published ones")


def _show_terms(dataset: Dataset, *, downloads: bool) -> None:
    say(f"{dataset.name}: {dataset.title}")
    say(f"terms: {dataset.terms}")
    say(f"cite: {dataset.citation}")
    if downloads and dataset.home is not None:
        say(f"home: {dataset.home.page} ({dataset.home.status})")


class DownloadProgress:
    """Bytes of the current file: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self.reporter = Reporter(starting=self._starting, progress=self._progress, say=say)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last_line = 0.0

    def __enter__(self) -> Self:
        if stderr.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=stderr, transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _starting(self, url: str) -> None:
        say(f"fetching {url}")
        self._last_line = time.monotonic()
        if self._bar is not None:
            self._task = self._bar.add_task(url.rpartition("/")[2], total=None)

    def _progress(self, done: int, total: int | None) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            say(f"{done:,} bytes" + (f" of {total:,}" if total is not None else ""))
            self._last_line = time.monotonic()
