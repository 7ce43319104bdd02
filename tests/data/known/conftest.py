from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.known.http_server import Site, serving


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    pytest.importorskip("pooch", reason="downloads need pooch")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        yield running


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAGED_DATA", str(tmp_path))
    return tmp_path
