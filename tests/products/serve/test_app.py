"""The application as a whole: whatever is asked, it answers; whatever is swapped, no answer is wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caged
from caged.products.serve import Ask, Engine, ServedModel
from caged.products.serve.app import create_app
from caged.products.serve.served import Served
from tests.products.serve.asking import app_of, ask, client, get, post, refused
from tests.products.serve.exported import exported
from tests.products.serve.test_served import put

TEXT = st.text(max_size=12)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["u00", "u59", "i00", "i39", "i03", "0", "graph", "title"])  # some are known

ATTRIBUTES = st.sampled_from(["category", "in_stock", "price", "year", "tags", "title", "degree"])
VALUES = st.sampled_from(["hats", "red", True, 1.5, 2003, ["hats", "shoes"], [2003, 2**63], [1, True, "x"]])


@pytest.fixture(scope="module")
def artefact(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app") / "graph"
    exported(finished_run, folder, with_price=False)
    return folder


@pytest.fixture(scope="module")
def app(artefact: Path) -> FastAPI:
    return app_of(artefact)


@pytest.fixture(scope="module")
def shop(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """With attributes of every type, so that filters have something to go wrong with."""
    folder = tmp_path_factory.mktemp("shop")
    saved = caged.load(finished_run, device="cpu").save(folder / "model")
    rows = range(40)
    table = {
        "item_id": [f"i{row:02d}" for row in rows],
        "title": [None if row % 7 == 0 else f"Item {row}" for row in rows],
        "category": [None if row % 11 == 0 else "hats" if row % 2 else "shoes" for row in rows],
        "in_stock": [row % 3 > 0 for row in rows],
        "price": [0.5 * row for row in rows],
        "year": [2000 + row for row in rows],
        "tags": [["red", "blue"][: row % 3] for row in rows],
    }
    pq.write_table(pa.table(table), saved / "items.parquet")
    exported(saved, folder / "shop", with_price=False)
    return app_of(folder / "shop")


# ---------------------------------------------------------------- the OpenAPI document


def fitting(schema: dict[str, Any], document: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of a schema of the document, and now and then one that is none."""
    if "$ref" in schema:
        return fitting(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    if "anyOf" in schema:
        return st.one_of([fitting(one, document) for one in schema["anyOf"]])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        parts = {name: fitting(one, document) for name, one in schema["properties"].items()}
        needed = {name: parts.pop(name) for name in schema.get("required", ())}
        return st.fixed_dictionaries(needed, optional=parts)
    if kind == "object":
        inner = schema.get("additionalProperties")
        values = fitting(inner, document) if isinstance(inner, dict) else ANYTHING
        return st.dictionaries(TEXT | ATTRIBUTES, values | VALUES, max_size=2)
    if kind == "array":
        return st.lists(fitting(schema["items"], document), max_size=4)
    plain: dict[Any, st.SearchStrategy[Any]] = {
        "string": TEXT | NAMES,
        "integer": st.integers(schema.get("minimum"), schema.get("maximum")) | st.integers(1, 50),
        "number": st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return plain[kind]


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, about) for path, every in document["paths"].items() for method, about in every.items()]


@st.composite
def requests(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """One of the operations, with what its schemas allow, or with anything at all."""
    method, path, about = draw(st.sampled_from(operations(document)))
    params: dict[str, Any] = {}
    for one in about.get("parameters", ()):
        value = draw(fitting(one["schema"], document) | TEXT)
        if one["in"] == "path":
            path = path.replace("{" + one["name"] + "}", draw(NAMES) if draw(st.booleans()) else "x")
        elif value is not None and (one["required"] or draw(st.booleans())):
            params[one["name"]] = value
    asked = {"method": method.upper(), "path": path, "params": params}
    if "requestBody" in about:
        schema = about["requestBody"]["content"]["application/json"]["schema"]
        asked["json"] = draw(fitting(schema, document) if draw(st.integers(0, 9)) else ANYTHING)
    return asked


@pytest.mark.parametrize("examples", [80, pytest.param(3000, marks=pytest.mark.slow)])
def test_nothing_that_the_document_allows_breaks_the_server(shop: FastAPI, examples: int) -> None:
    document = get(shop, "/openapi.json").json()
    declared = {(method.upper(), path): set(about["responses"]) for method, path, about in operations(document)}

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(requests(document))
    def check(asked: dict[str, Any]) -> None:
        try:
            answer = ask(shop, **asked)
        except (UnicodeEncodeError, ValueError):  # no client can send this: NaN, halves of characters
            return
        assert answer.status_code < 500, (asked, answer.text)
        place = "/similar/{item}" if asked["path"].startswith("/similar/") else asked["path"]
        assert str(answer.status_code) in declared[asked["method"], place], (asked, answer.text)
        if answer.status_code >= 400:
            assert list(answer.json()) == ["error"]

    check()


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=st.binary(max_size=30), path=st.sampled_from(["/recommend", "/recommend/batch", "/admin/swap"]))
def test_a_body_of_any_bytes_is_refused(app: FastAPI, body: bytes, path: str) -> None:
    answer = ask(app, "POST", path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in ((200, 400, 404, 422) if path == "/admin/swap" else (400, 404, 422)), answer.text


def test_every_operation_has_a_summary_and_requests_have_examples(app: FastAPI) -> None:
    document = get(app, "/openapi.json").json()
    assert {path for _, path, _ in operations(document)} == {
        *("/recommend", "/recommend/batch", "/similar/{item}", "/explain", "/items", "/about"),
        *("/healthz", "/readyz", "/metrics", "/admin/swap"),
    }
    assert all(about["summary"] for _, _, about in operations(document))
    for name in ("Recommend", "Batch"):
        assert document["components"]["schemas"][name]["examples"]


# ---------------------------------------------------------------- what goes wrong


def test_what_is_not_there_is_a_sentence(app: FastAPI) -> None:
    refused(get(app, "/nothing"), 404, "nothing at this address")
    refused(get(app, "/recommend"), 405, "GET is not for this address")
    refused(ask(app, "POST", "/recommend", content=b"{", headers={"Content-Type": "application/json"}), 400, "no JSON")
    refused(ask(app, "POST", "/recommend"), 422, "the body is missing")
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # what curl says of `-d`
    refused(
        ask(app, "POST", "/recommend", content=b"{}", headers=form),
        422,
        "send the header Content-Type: application/json",
    )


def test_what_breaks_inside_is_told_without_details(artefact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of(artefact)
    monkeypatch.setattr(Engine, "recommend_batch", lambda *_: 1 / 0)
    refused(post(app, "/recommend", {"user_id": "u05"}), 500, "something went wrong inside")
    assert 'route="/recommend",status="500"} 1' in get(app, "/metrics").text


# ---------------------------------------------------------------- hot swap under load


def test_swaps_under_load_make_no_answer_wrong(artefact: Path, finished_run: Path, tmp_path: Path) -> None:
    """Every answer is that of the version it names; broken artefacts in between are refused."""
    exported(finished_run, tmp_path / "half", dtype="bfloat16", with_price=False)
    models = {}
    for place in (artefact, tmp_path / "half"):
        put(place, tmp_path / "served")
        served = Served("served", tmp_path / "served")
        models[served.current.version] = Engine(ServedModel.load(place))
    assert len(models) == 2
    app = create_app({"served": served})
    seen, codes = set(), []

    async def asking(number: int) -> None:
        async with client(app) as one:
            for turn in range(40):
                user = f"u{(7 * number + turn) % 60:02d}"
                answer = await one.post("/recommend", json={"user_id": user, "k": 5})
                assert answer.status_code == 200, answer.text
                found = answer.json()
                wanted = models[found["version"]].recommend(Ask(user_id=user, k=5))
                seen.add(found["version"])
                engine = models[found["version"]]
                assert [item["item_id"] for item in found["items"]] == engine.model.items.at(wanted.items)
                assert [item["score"] for item in found["items"]] == pytest.approx(wanted.scores.tolist(), abs=1e-6)

    async def swapping() -> None:
        async with client(app) as one:
            for turn in range(6):
                put((artefact, tmp_path / "half")[turn % 2], tmp_path / "served")
                if turn % 3 == 2:
                    (tmp_path / "served" / "users.arrow").unlink()
                codes.append((await one.post("/admin/swap")).status_code)

    async def both() -> None:
        await asyncio.gather(swapping(), *(asking(number) for number in range(4)))

    asyncio.run(both())
    assert codes == [200, 200, 409, 200, 200, 409]
    assert seen == set(models)
