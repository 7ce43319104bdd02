from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from caged.data.known.datasets import DATASETS
from tests.data.known.http_server import Site, serving
from tests.data.known.tiny import tiny, two_files


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("CAGED_DATA", str(folder))
    return folder


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server, and a dataset `tiny` whose home it is."""
    pytest.importorskip("pooch", reason="downloads need pooch")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        monkeypatch.setitem(DATASETS, "tiny", tiny(two_files(running)))
        yield running
