"""Key, size, time, count, log: what every request passes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from caged.products.serve import Limits
from tests.products.serve.asking import app_of, ask, client, get, post, refused
from tests.products.serve.exported import exported

KEY = "a-key-that-nobody-guesses"


@pytest.fixture(scope="module")
def artefact(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guarded") / "artefact"
    exported(finished_run, folder, with_price=False)
    return folder


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"X-API-Key": "wrong"}, 401),
        ({"X-API-Key": KEY[:-1]}, 401),
        ({"X-API-Key": ""}, 401),
        ({"Authorization": f"Basic {KEY}"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"X-API-Key": KEY}, 200),
        ({"Authorization": f"Bearer {KEY}"}, 200),
        ({"Authorization": f"bearer {KEY}"}, 200),
    ],
)
def test_with_a_key_everything_but_health_asks_for_it(artefact: Path, headers: dict[str, str], status: int) -> None:
    app = app_of(artefact, key=KEY)
    for method, path in (("GET", "/about"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("POST", "/admin/swap")):
        answer = ask(app, method, path, headers=headers)
        assert answer.status_code == status, path
        if status == 401:
            refused(answer, 401, "the API key is missing or wrong")
            assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/healthz", "/readyz"):
        assert ask(app, "GET", path, headers=headers).status_code == 200


def test_a_long_body_is_refused_whether_it_says_so_or_not(artefact: Path) -> None:
    app = app_of(artefact, limits=Limits(body_bytes=100))

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b" " * 10

    assert post(app, "/recommend", {"user_id": "u05", "k": 1}).status_code == 200
    refused(ask(app, "POST", "/recommend", content=b" " * 101), 413, "at most 100 bytes")
    refused(ask(app, "POST", "/recommend", content=pieces()), 413, "at most 100 bytes")
    refused(ask(app, "POST", "/recommend", content=b"", headers={"Content-Length": "-1"}), 413, "at most 100 bytes")


def test_a_body_that_never_ends_is_given_up(artefact: Path) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    refused(ask(app_of(artefact, timeout_s=0.05), "POST", "/recommend", content=slow()), 408, "within 0.05 s")


def test_the_log_says_what_happened_and_not_who_asked(artefact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = app_of(artefact, access_log=True, key=KEY)
    headers = {"X-API-Key": KEY}
    post(app, "/recommend", {"user_id": "u05", "history": None}, headers=headers)
    ask(app, "GET", "/explain", params={"user_id": "u05", "item": "i03"}, headers=headers)
    ask(app, "GET", "/secret-place", headers=headers)
    ask(app, "POST", "/recommend", json={"user_id": "u05"})
    out = capsys.readouterr().out
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("POST", "/recommend", 200),
        ("GET", "/explain", 200),
        ("GET", "none", 404),
        ("POST", "none", 401),
    ]
    assert set(lines[0]) == {"time", "method", "route", "status", "ms", "bytes"}
    for secret in ("u05", "i03", "secret", KEY):
        assert secret not in out


def test_metrics_count_requests_and_swaps(artefact: Path) -> None:
    app = app_of(artefact)
    post(app, "/recommend", {"user_id": "u05"})
    post(app, "/recommend", {"user_id": "nobody"})
    ask(app, "BREW", "/recommend")
    assert post(app, "/admin/swap", {}).status_code == 200
    answer = get(app, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'caged_requests_total{method="POST",route="/recommend",status="200"} 1' in lines
    assert 'caged_requests_total{method="POST",route="/recommend",status="404"} 1' in lines
    assert any(line.startswith('caged_requests_total{method="other"') for line in lines)
    assert 'caged_swaps_total{model="artefact"} 1' in lines
    assert "caged_inside 0" in lines


def test_under_overload_the_next_one_gets_503_and_is_told_when_to_come_back(
    artefact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caged.products.serve.lists.QUICK_WORK", 0)  # so that threads answer
    app = app_of(artefact, threads=1, queue=1)
    engine = app.state.service.pick(None).engine
    answered = type(engine).recommend_batch

    async def crowd() -> list[Any]:
        loop, goes_on = asyncio.get_running_loop(), asyncio.Event()

        def slow(self: Any, request: Any) -> Any:
            asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result(10)
            return answered(self, request)

        monkeypatch.setattr(type(engine), "recommend_batch", slow)
        async with client(app) as asking:
            first = []
            for inside in (1, 2):  # one is being answered, one waits
                first.append(asyncio.ensure_future(asking.post("/recommend", json={"user_id": "u05"})))
                async with asyncio.timeout(10):
                    while app.state.service.inside < inside or app.state.service.gate.inside < 1:
                        await asyncio.sleep(0.001)
            turned_away = [await asking.post("/recommend", json={"user_id": "u05"}), await asking.get("/readyz")]
            alive = await asking.get("/healthz")
            goes_on.set()
            return [*turned_away, alive, *await asyncio.gather(*first)]

    *turned_away, alive, one, other = asyncio.run(crowd())
    for answer in turned_away:
        refused(answer, 503, "try again in a second")
        assert answer.headers["retry-after"] == "1"
    assert [answer.status_code for answer in (alive, one, other)] == [200, 200, 200]
