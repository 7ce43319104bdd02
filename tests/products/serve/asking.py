"""An application over artefacts of tiny runs, asked in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from caged.products.serve.app import create_app
from caged.products.serve.served import serve_folders
from caged.products.serve.settings import Settings


def app_of(*folders: Path, **settings: Any) -> FastAPI:
    chosen = Settings(**settings)
    return create_app(serve_folders(folders, chosen.limits), chosen)


def client(app: FastAPI) -> httpx.AsyncClient:
    # As behind a socket: whatever breaks inside is an answer with 500.
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


def ask(app: FastAPI, method: str, path: str, **options: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        async with client(app) as asking:
            return await asking.request(method, path, **options)

    return asyncio.run(send())


def post(app: FastAPI, path: str, body: Any, **options: Any) -> httpx.Response:
    return ask(app, "POST", path, json=body, **options)


def get(app: FastAPI, path: str, **params: Any) -> httpx.Response:
    return ask(app, "GET", path, params=params)


def refused(answer: httpx.Response, status: int, words: str) -> None:
    """One sentence, and nothing else."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"]
    assert words in body["error"]
    assert "\n" not in body["error"]
