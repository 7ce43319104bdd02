"""The short way says what the long way says, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caged.products.serve.app import Application
from tests.products.serve.asking import app_of, ask, get
from tests.products.serve.exported import exported
from tests.products.serve.test_app import requests

JSON = {"Content-Type": "application/json"}
PATHS = ("/recommend", "/recommend/batch")


@pytest.fixture(scope="module")
def app(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Application:
    folder = tmp_path_factory.mktemp("short") / "graph"
    exported(finished_run, folder, with_price=False)
    return app_of(folder)


def both_ways(app: Application, path: str, body: bytes) -> tuple[httpx.Response, httpx.Response]:
    """Any kind of JSON is JSON, but only one goes the short way."""
    short = ask(app, "POST", path, content=body, headers=JSON)
    return short, ask(app, "POST", path, content=body, headers={"Content-Type": "application/x+json"})


@pytest.mark.parametrize("examples", [40, pytest.param(3000, marks=pytest.mark.slow)])
def test_both_ways_say_the_same(app: Application, examples: int) -> None:
    document = get(app, "/openapi.json").json()
    document["paths"] = {path: document["paths"][path] for path in PATHS}

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(requests(document))
    def check(asked: dict[str, Any]) -> None:
        short, long = both_ways(app, asked["path"], json.dumps(asked["json"]).encode())
        assert (short.status_code, short.content) == (long.status_code, long.content)
        assert dict(short.headers) == dict(long.headers)

    check()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=st.binary(max_size=30), path=st.sampled_from(PATHS))
def test_both_ways_refuse_the_same_bytes(app: Application, body: bytes, path: str) -> None:
    short, long = both_ways(app, path, body)
    assert (short.status_code, short.content) == (long.status_code, long.content)


@pytest.mark.parametrize(
    "body",
    [
        b'{"user_id": "u05", "k": 2, "k": 3}',
        b'{"user_id": "\\ud800"}',
        b'{"history": ["i01", 1180591620717411303424, "\\u00fc", "\\ud800"], "k": 2}',
        b'{"user_id": "u05", "less_popular": NaN}',
        b'{"user_id": "u05", "less_popular": 1}',
        b'{"user_id": "u05", "less_popular": true}',
        b'{"user_id": "u05", "k": 1e1}',
        b'{"user_id": 1.0}',
        b'\xef\xbb\xbf{"user_id": "u05"}',
        '{"user_id": "u05"}'.encode("utf-16"),
        b"[" * 100_000,
        b"null",
        b"",
    ],
)
def test_odd_bodies_get_the_same_answer_and_never_500(app: Application, body: bytes) -> None:
    short, long = both_ways(app, "/recommend", body)
    assert (short.status_code, short.content) == (long.status_code, long.content)
    assert short.status_code in (200, 400, 404, 422), short.text


def test_the_long_way_is_not_taken_for_plain_requests(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.router, "app", None)  # whoever comes here breaks
    for path, body in (("/recommend", {"user_id": "u05"}), ("/recommend/batch", {"requests": [{"user_id": "u05"}]})):
        assert ask(app, "POST", path, json=body).status_code == 200
    assert ask(app, "POST", "/recommend", json={"user_id": "nobody"}).status_code == 404
