from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.data.known.http_server import Site, serving


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    pytest.importorskip("pooch", reason="downloads need pooch")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        yield running
