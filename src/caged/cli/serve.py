"""`caged serve`."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from caged.cli.output import Verbose, say
from caged.errors import ConfigError

KEY = "CAGED_API_KEY"


def serve(
    artefacts: Annotated[list[Path], typer.Argument(help="Folders that caged export artefact wrote.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; an address that others can reach needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8000,
    key_file: Annotated[
        Path | None, typer.Option(help=f"File with the API key that requests must bring; or set {KEY}.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Number of requests to answer at the same time.")] = 2,
    queue: Annotated[
        int, typer.Option(help="Number of requests that may wait; the rest get 503 and are asked to come back.")
    ] = 64,
    timeout: Annotated[
        float, typer.Option(help="Time limit in seconds, for a request to arrive and for its answer.")
    ] = 10.0,
    max_k: Annotated[int, typer.Option(help="Longest list allowed.")] = 1000,
    max_batch: Annotated[int, typer.Option(help="Most requests allowed in a batch.")] = 1000,
    max_history: Annotated[int, typer.Option(help="Most items allowed in a history.")] = 10_000,
    max_body: Annotated[int, typer.Option(help="Most bytes allowed in a request.")] = 8 * 2**20,
    watch: Annotated[
        bool,
        typer.Option("--watch/--no-watch", help="Load a new artefact as soon as it replaces the old one."),
    ] = True,
    access_log: Annotated[
        bool, typer.Option("--access-log/--no-access-log", help="Write a line of JSON to stdout for every request.")
    ] = True,
    explorer: Annotated[
        bool,
        typer.Option("--explorer/--no-explorer", help="Also serve a page at /explorer/; it shows people's histories."),
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Answer over HTTP: lists for known and new people, similar items, reasons, with a knob against bestsellers.

    Requests name the artefact by the name of its folder, or mean the first one. /openapi.json says what can be asked;
    docs/serving.md has examples, and shows how to run this in a container or below systemd.

    Examples:

      caged serve artefact

      caged serve artefact --host 0.0.0.0 --key-file key.txt
    """
    started = time.perf_counter()
    # Before numpy is loaded: the threads of the server share the cores, those of a matrix product would fight for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from caged.products.serve.requests import Limits
    from caged.products.serve.served import serve_folders
    from caged.products.serve.settings import Settings, check_reachable

    logging.getLogger("caged").setLevel(logging.DEBUG if verbose else logging.INFO)
    settings = Settings(
        key=_key(key_file),
        limits=Limits(k=max_k, batch=max_batch, history=max_history, body_bytes=max_body),
        threads=threads,
        queue=queue,
        timeout_s=timeout,
        access_log=access_log,
    )
    check_reachable(host, settings)
    # The artefacts are read and checked while the web framework is imported; each takes about as long as the other.
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(serve_folders, artefacts, settings.limits)
        create_app, listen = _framework()
        served = loading.result()

    def ready(address: str) -> None:
        for name, one in served.items():
            manifest = one.engine.model.manifest
            say(f"{name}: {manifest.method}, {manifest.users:,} users, {manifest.items:,} items, {one.engine.search}")
        key = "with an API key" if settings.key else "without an API key: only this machine can ask"
        say(f"ready after {time.perf_counter() - started:.1f} s: {address} ({key})")
        if explorer:
            say(f"explorer: {address}/explorer/")

    app = create_app(served, settings, explorer=explorer)
    listen(app, served, settings, host=host, port=port, watch=watch, ready=ready)


def _framework() -> tuple[Callable[..., Any], Callable[..., None]]:
    try:
        from caged.products.serve.app import create_app
        from caged.products.serve.server import listen
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"caged serve needs the package {error.name}, which is not installed; pip install 'caged-rec[serve]'"
        ) from error
    return create_app, listen


def _key(file: Path | None) -> str | None:
    """Not from the command line, which everybody on the machine can read."""
    if file is None:
        return os.environ.get(KEY) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read --key-file {file} ({error}); give a text file with the key") from error
