"""The page over HTTP: only where it is asked for, nothing from elsewhere, nothing for the pages of others."""

from __future__ import annotations

import gc
import re
import shutil
import weakref
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from caged.products.serve.app import create_app
from caged.products.serve.explorer.routes import ASSETS, FILES, QUESTIONS, ROOT
from caged.products.serve.served import serve_folders
from caged.products.serve.settings import Settings
from tests.products.serve.asking import ask, get, refused
from tests.products.serve.explorer.shop import MARKUP, STRANGE

HERE = {"Host": "127.0.0.1:8000"}
KEY = "a key of many letters"


@pytest.fixture(scope="module")
def app(shop: list[Path]) -> FastAPI:
    return create_app(serve_folders(shop), explorer=True)


def question(app: FastAPI, name: str, body: Any, **headers: str) -> httpx.Response:
    return ask(app, "POST", f"{ROOT}/api/{name}", json=body, headers={**HERE, **headers})


def test_the_explorer_is_off_unless_it_is_asked_for(shop: list[Path]) -> None:
    plain = create_app(serve_folders(shop))
    refused(get(plain, f"{ROOT}/"), 404, "nothing at this address")
    refused(question(plain, "person", {"user_id": "u01"}), 404, "nothing at this address")


@pytest.mark.parametrize("path", FILES)
def test_every_file_comes_with_a_policy_against_foreign_hosts(app: FastAPI, path: str) -> None:
    answer = get(app, ROOT + path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_file_names_another_host() -> None:
    for file in ASSETS.iterdir():
        assert not re.search(
            r"https?:|//[a-z]|@import|innerHTML|insertAdjacent|document\.write|eval\(", file.read_text()
        )


def test_every_file_of_the_page_is_served(app: FastAPI) -> None:
    served = {file for file, _ in FILES.values()}
    assert {file for file in ASSETS.iterdir() if file.is_file()} <= served
    page = (ASSETS / "explorer.html").read_text(encoding="utf-8")
    for name in re.findall(r'(?:href|src)="([^"#]+)"', page):
        assert name.startswith("data:") or get(app, f"{ROOT}/{name}").status_code == 200
    assert get(app, ROOT).headers["location"] == f"{ROOT}/"


def test_questions_are_answered(app: FastAPI) -> None:
    about = question(app, "about", {}).json()
    assert [model["name"] for model in about["models"]] == ["LightGCN", "Softmax"]
    assert question(app, "person", {"user_id": STRANGE}).json()["id"] == STRANGE
    lists = question(app, "lists", {"history": [MARKUP], "less_popular": [0, 1]}).json()["lists"]
    assert [len(listed["items"]) for listed in lists] == [20, 20]
    for name in QUESTIONS:
        assert question(app, name, {"q": ""}).status_code in (200, 404, 422)


@pytest.mark.parametrize(
    ("name", "body", "status", "words"),
    [
        ("person", {"user_id": "nobody"}, 404, "'nobody' is not known"),
        ("similar", {"item_id": "nothing"}, 404, "'nothing' is not known"),
        ("search", {"q": None}, 422, "give text"),
        ("lists", [1], 422, "no JSON object"),
        ("nonsense", {}, 404, "nothing at this address"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(app: FastAPI, name: str, body: Any, status: int, words: str) -> None:
    refused(question(app, name, body), status, words)


@pytest.mark.parametrize("content", [b"", b"{", b"[", b'{"q": NaN}', b"\xff", b"[" * 5000])
def test_a_broken_body_is_a_sentence(app: FastAPI, content: bytes) -> None:
    headers = {**HERE, "Content-Type": "application/json"}
    refused(ask(app, "POST", f"{ROOT}/api/search", content=content, headers=headers), 422, "no JSON object")


def test_pages_of_others_in_the_same_browser_get_nothing(app: FastAPI) -> None:
    """What a page may send elsewhere without asking is a form or plain text; and a name can be made to lead here."""
    body = b'{"user_id": "u01"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = ask(app, "POST", f"{ROOT}/api/person", content=body, headers={**HERE, "Content-Type": kind})
        refused(answer, 422, "application/json")
    refused(question(app, "person", {"user_id": "u01"}, Host="shop.example"), 422, "only under 127.0.0.1")
    refused(question(app, "person", {"user_id": "u01"}, Host="127.0.0.1.shop.example"), 422, "only under 127.0.0.1")
    for host in ("localhost:8000", "[::1]:8000", "127.0.0.1"):
        assert question(app, "person", {"user_id": "u01"}, Host=host).status_code == 200


def test_with_a_key_the_page_comes_without_it_and_the_people_do_not(shop: list[Path]) -> None:
    guarded = create_app(serve_folders(shop), Settings(key=KEY), explorer=True)
    assert get(guarded, f"{ROOT}/").status_code == 200
    refused(question(guarded, "person", {"user_id": "u01"}), 401, "API key")
    named = {"Host": "shop.example", "Authorization": f"Bearer {KEY}"}
    assert question(guarded, "person", {"user_id": "u01"}, **named).status_code == 200


def test_a_swapped_model_answers(shop: list[Path], tmp_path: Path) -> None:
    shutil.copytree(shop[0], tmp_path / "served")
    served = serve_folders([tmp_path / "served"])
    swapping = create_app(served, explorer=True)
    assert [model["name"] for model in question(swapping, "about", {}).json()["models"]] == ["LightGCN"]
    old = weakref.ref(served["served"].engine)
    shutil.rmtree(tmp_path / "served")
    shutil.copytree(shop[1], tmp_path / "served")
    served["served"].swap()
    gc.collect()
    assert old() is None  # its memory is free before anybody asks again
    assert [model["name"] for model in question(swapping, "about", {}).json()["models"]] == ["Softmax"]


def test_the_explorer_is_no_part_of_the_documented_interface(app: FastAPI) -> None:
    assert not [path for path in app.openapi()["paths"] if path.startswith(ROOT)]
