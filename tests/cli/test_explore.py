"""`caged explore`: from a run to a page with one command, and nothing left of it."""

from __future__ import annotations

import json
import signal
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from caged.cli import explore as command
from caged.products.serve.export import artefact_of_run
from tests.cli.invoke import Outcome, caged, ended, refused, spawn


@pytest.fixture(scope="module")
def artefact(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored") / "artefact"
    artefact_of_run(finished_run, folder, with_price=False, device="cpu")
    return folder


def asked(page: str, question: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"{page}api/{question}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def explored(folders: list[Path], end: signal.Signals, cwd: Path, *options: str) -> tuple[Outcome, Any]:
    """The command in a process of its own, what the page says about the models, and how the process ended."""
    process = spawn("explore", *folders, "--no-browser", "--device", "cpu", *options, cwd=cwd)
    assert process.stdout is not None
    try:
        page = process.stdout.readline().strip()
        about = asked(page, "about", {})
    finally:
        process.send_signal(end)
    return ended(process), about


def test_a_run_beside_an_artefact_opens_without_any_set_up(
    finished_run: Path, artefact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    outcome, about = explored([finished_run, artefact], signal.SIGINT, tmp_path)
    assert [model["name"] for model in about["models"]] == ["LightGCN (A)", "LightGCN (B)"]
    assert [model["price"] is not None for model in about["models"]] == [True, False]  # of runs it is measured
    assert outcome.code == 0, outcome.err
    assert outcome.err.splitlines()[-1] == "ended; nothing stays behind"
    assert "preparing" in outcome.err
    assert list(temporary.iterdir()) == []


def test_a_process_that_is_told_to_end_cleans_up_too(
    artefact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    outcome, _ = explored([artefact], signal.SIGTERM, tmp_path)
    assert outcome.code == 0, outcome.err
    assert list(tmp_path.iterdir()) == []


def test_the_browser_is_opened_where_there_is_a_screen(artefact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def listen(*_: Any, ready: Any, **__: Any) -> None:
        ready("http://127.0.0.1:1")
        raise KeyboardInterrupt

    monkeypatch.setattr("caged.products.serve.server.listen", listen)
    monkeypatch.setattr(command.webbrowser, "open", opened.append)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    monkeypatch.setenv("DISPLAY", ":0")
    outcome = caged("explore", artefact, "--json")
    assert json.loads(outcome.out) == {"address": "http://127.0.0.1:1/explorer/", "methods": ["lightgcn"]}
    assert opened == ["http://127.0.0.1:1/explorer/"]
    assert caged("explore", artefact, "--no-browser").out == "http://127.0.0.1:1/explorer/\n"
    monkeypatch.setattr(command.sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert caged("explore", artefact).code == 0
    assert len(opened) == 1


def test_what_cannot_be_explored_is_a_sentence(artefact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    refused(caged("explore", artefact, artefact, artefact), "3 folders are given", "two side by side")
    with socket.create_server((command.HOST, 0)) as taken:
        port = str(taken.getsockname()[1])
        refused(caged("explore", artefact, "--port", port), f"--port {port} cannot be used", "0 for a free one")
    refused(caged("explore", artefact, "--port", "70000"), "--port 70000 cannot be used")
    outcome = caged("explore", tmp_path)
    assert outcome.code == 2
    assert "holds no trained model" in outcome.error
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_is_named(artefact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "caged.products.serve.app", None)
    refused(caged("explore", artefact), "caged-rec[serve]")
