"""`caged explore`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from caged.cli.output import AsJson, Verbose, print_json, print_text, say
from caged.errors import ConfigError

HOST = "127.0.0.1"
MOST = 2


def explore(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Finished runs, saved models or artefacts: one, or two side by side."),
    ],
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 0,
    price: Annotated[
        bool, typer.Option("--price/--no-price", help="Measure first what each notch of the knob costs.")
    ] = True,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Open a page on this machine: search people, see their lists, turn popularity down, ask why.

    Nothing has to be set up and nothing stays: models are exported to a temporary folder, and Ctrl-C ends it all. The
    page shows what people have had, so only this machine can open it.

    Examples:

      caged explore runs/lightgcn

      caged explore runs/lightgcn runs/softmax --no-browser
    """
    if len(runs) > MOST:
        raise ConfigError(f"{len(runs)} folders are given; the explorer shows one, or two side by side")
    try:
        from caged.products.serve.app import create_app
        from caged.products.serve.server import listen
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"caged explore needs the package {error.name}, which is not installed; pip install 'caged-rec[serve]'"
        ) from error
    from caged.products.serve.served import Served
    from caged.products.serve.settings import Settings

    _check_port(port)
    _end_as_by_ctrl_c()
    with tempfile.TemporaryDirectory(prefix="caged-explore-") as folder:
        served = {}
        for place, run in enumerate(runs):
            artefact = _artefact(run, Path(folder) / str(place), price=price, device=device)
            served[str(place)] = Served(str(place), artefact)

        def ready(address: str) -> None:
            page = f"{address}/explorer/"
            if as_json:
                methods = [one.engine.model.manifest.method for one in served.values()]
                print_json({"address": page, "methods": methods})
            else:
                print_text(page)
            sys.stdout.flush()
            say("Ctrl-C ends it")
            if browser and _has_a_screen():
                webbrowser.open(page)

        app = create_app(served, Settings(), explorer=True)
        with contextlib.suppress(KeyboardInterrupt):  # the usual way to end it
            listen(app, served, Settings(), host=HOST, port=port, watch=False, ready=ready)
    say("ended; nothing stays behind")


def _artefact(run: Path, out: Path, *, price: bool, device: str) -> Path:
    """An artefact is served as it is."""
    from caged.products.serve import MANIFEST

    if (run / MANIFEST).is_file():
        return run
    from caged.products.serve.export import artefact_of_run  # with torch

    say(f"preparing {run}" + (" and measuring what the knob costs" if price else ""))
    artefact_of_run(run, out, with_price=price, device=device)
    return out


def _check_port(port: int) -> None:
    """Before anything takes time."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise ConfigError(f"--port {port} cannot be used ({error}); choose another, or 0 for a free one") from error


def _end_as_by_ctrl_c() -> None:
    """So that the temporary folder goes whichever way the process is asked to end."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


def _has_a_screen() -> bool:
    """On a Linux without one, Python would start a browser for terminals, over this very terminal."""
    return not sys.platform.startswith("linux") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
