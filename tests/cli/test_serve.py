"""`caged serve`: what it refuses, and once for real: it starts, answers, takes another model, and stops."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.cli.invoke import caged, refused, spawn
from tests.products.serve.exported import exported
from tests.products.serve.test_served import put

KEY = "a-key-that-nobody-guesses"


@pytest.fixture(scope="module")
def artefact(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve") / "artefact"
    exported(finished_run, folder, with_price=False)
    return folder


def test_what_cannot_be_served_is_a_sentence(
    artefact: Path, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CAGED_API_KEY", raising=False)
    refused(caged("serve", finished_run), "is no artefact", "caged export artefact")
    refused(caged("serve", artefact, "--host", "0.0.0.0"), "an API key is needed", "--key-file")
    refused(caged("serve", artefact, "--key-file", tmp_path / "none"), "cannot read --key-file")
    (tmp_path / "key").write_text("short\n")
    refused(caged("serve", artefact, "--key-file", tmp_path / "key"), "at least 16 ASCII characters")
    refused(caged("serve", artefact, "--threads", "0"), "threads is 0")
    refused(caged("serve", artefact, "--max-k", "0"), "the limit on k is 0")
    refused(caged("serve", artefact, artefact), "two artefacts are called 'artefact'")
    copies = [shutil.copytree(artefact, tmp_path / name) for name in "abc"]
    refused(caged("serve", *copies, "--explorer"), "the explorer shows one artefact or 2; got 3")


def test_without_the_extra_it_says_what_to_install(artefact: Path) -> None:
    lacking = {name: None for name in sys.modules if name.startswith("caged.products.serve.app")}
    with mock.patch.dict(sys.modules, {**lacking, "caged.products.serve.app": None, "fastapi": None}):
        refused(caged("serve", artefact), "pip install 'caged-rec[serve]'")


def asked(address: str, path: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "X-API-Key": KEY}
    with urllib.request.urlopen(urllib.request.Request(address + path, content, headers), timeout=20) as answer:
        return json.loads(answer.read())


def test_it_answers_until_it_is_told_to_stop(artefact: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY + "\n")
    options = ("--port", "0", "--key-file", tmp_path / "key", "--explorer")
    process = spawn("serve", artefact, *options, cwd=tmp_path)
    try:
        assert process.stderr is not None
        first, ready = process.stderr.readline(), process.stderr.readline()
        assert "artefact: lightgcn, 60 users, 40 items, exact search" in first
        found = re.search(r"ready after [0-9.]+ s: (http://127.0.0.1:[0-9]+) \(with an API key\)", ready)
        assert found is not None, ready
        assert process.stderr.readline() == f"explorer: {found[1]}/explorer/\n"
        assert len(asked(found[1], "/explorer/api/person", {"user_id": "u05"})["history"]) > 0
        assert len(asked(found[1], "/recommend", {"user_id": "u05", "k": 5})["items"]) == 5
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(found[1] + "/about", timeout=20)
        port = found[1].rpartition(":")[2]
        refused(caged("serve", artefact, "--port", port), f"cannot listen on 127.0.0.1:{port}")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    assert [json.loads(line)["status"] for line in out.splitlines()] == [200, 200, 401]
    assert err == ""


def test_what_has_begun_is_answered_before_it_stops(artefact: Path, tmp_path: Path) -> None:
    shutil.copytree(artefact, tmp_path / "served")
    process = spawn("serve", tmp_path / "served", "--port", "0", "--no-access-log", cwd=tmp_path)
    try:
        assert process.stderr is not None
        process.stderr.readline()
        found = re.search(r"http://127.0.0.1:([0-9]+)", process.stderr.readline())
        assert found is not None
        address = ("127.0.0.1", int(found[1]))
        with socket.create_connection(address, timeout=20) as begun:
            head = (
                b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n"
            )
            begun.sendall(head + b'{"user_id": ')
            assert asked(found[0], "/healthz") == {"status": "ok"}  # so the server has read what was sent before
            process.send_signal(signal.SIGTERM)
            until_closed(address)
            assert process.poll() is None
            begun.sendall(b'"u05", "k":2}')
            assert begun.recv(15) == b"HTTP/1.1 200 OK"
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert err == ""


def until_closed(address: tuple[str, int]) -> None:
    for _ in range(1000):
        try:
            socket.create_connection(address, timeout=20).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.01)
    raise AssertionError("the server still accepts connections")


@pytest.mark.slow
def test_a_new_model_takes_over_while_it_runs(artefact: Path, finished_run: Path, tmp_path: Path) -> None:
    shutil.copytree(artefact, tmp_path / "served")
    exported(finished_run, tmp_path / "half", dtype="bfloat16", with_price=False)
    process = spawn("serve", tmp_path / "served", "--port", "0", "--no-access-log", cwd=tmp_path)
    try:
        assert process.stderr is not None
        process.stderr.readline()
        found = re.search(r"http://127.0.0.1:[0-9]+", process.stderr.readline())
        assert found is not None
        before = asked(found[0], "/recommend", {"user_id": "u05"})["version"]
        put(tmp_path / "half", tmp_path / "served")
        told = process.stderr.readline()  # by whoever watches the folder
        after = asked(found[0], "/recommend", {"user_id": "u05"})["version"]
        assert after != before
        assert f"served: now answers with version {after}" in told
        (tmp_path / "served" / "items.arrow").unlink()
        with pytest.raises(urllib.error.HTTPError, match="409"):
            asked(found[0], "/admin/swap", {})
        assert asked(found[0], "/recommend", {"user_id": "u05"})["version"] == after
    finally:
        process.kill()
        process.communicate()
