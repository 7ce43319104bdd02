"""Questions for a soak test of `caged serve`, each with what is right: what `caged recommend` says for either model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caged
from caged.data.ids import Array
from caged.products.serve.export import artefact_of_run

USERS, ITEMS, HAD, CATEGORIES = 2_000, 3_000, 25, 20
METHODS = ("lightgcn", "softmax")
KNOBS = (0.0, 0.3, 1.0)
PEOPLE, HISTORIES, BATCH = 200, 100, 10
SPARE = 5  # items behind the last of a list, for ties at its end
CLOSE = 1e-5  # scores that are equal but for rounding


@dataclass(frozen=True, eq=False)
class Ranking:
    """Everything that one person may be shown, best first."""

    items: Array
    scores: Array

    def kept(self, allowed: Array | None, k: int) -> Wanted:
        keeps = slice(None) if allowed is None else allowed[self.items]
        items, scores = self.items[keeps][: k + SPARE], self.scores[keeps][: k + SPARE]
        return Wanted(items.tolist(), scores.tolist(), min(k, len(items)))


@dataclass(frozen=True, eq=False)
class Wanted:
    """What a list must be, and a few items more."""

    items: list[int]
    scores: list[float]
    k: int

    def is_met_by(self, found: Sequence[Mapping[str, Any]]) -> bool:
        """The same items in the same order; only where scores are equal but for rounding, items may change places."""
        if len(found) != self.k:
            return False
        score_of = dict(zip(self.items, self.scores, strict=True))
        names = [item["item_id"] for item in found]
        return len(set(names)) == len(names) and all(
            item["title"] == title(item["item_id"])
            and _close(item["score"], score)
            and _close(score_of.get(item["item_id"], np.inf), score)
            for item, score in zip(found, self.scores[: self.k], strict=True)
        )


@dataclass(frozen=True, eq=False)
class Question:
    """A request as it goes over the wire. `wanted` has the lists by version; empty where the request is a bad one."""

    kind: str
    sent: bytes
    status: int  # of the answer; 0: the connection is given up in the middle
    wanted: Mapping[str, Sequence[Wanted]]

    def is_right(self, body: bytes) -> bool:
        answer = json.loads(body)
        wanted = self.wanted.get(answer["version"])
        lists = answer.get("answers", [answer])
        return (
            wanted is not None
            and len(lists) == len(wanted)
            and all(one.is_met_by(found["items"]) for one, found in zip(wanted, lists, strict=True))
        )


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE * max(1.0, abs(other))


def title(item: int) -> str:
    return f"Item {item:,}"


def people(seed: int) -> tuple[list[int], dict[str, list[int]]]:
    """Ids of known people, and histories of new ones."""
    draw = np.random.default_rng([seed, 1])
    known = draw.choice(USERS, PEOPLE, replace=False).tolist()
    return known, {f"new {row}": draw.choice(ITEMS, 10, replace=False).tolist() for row in range(HISTORIES)}


def write_models(folder: Path, seed: int) -> tuple[dict[str, caged.Recommender], pa.Table]:
    """Two models of one made-up shop, trained for a moment, with their artefacts in `folder`; and the item table."""
    draw = np.random.default_rng([seed, 0])
    items = np.concatenate((np.arange(ITEMS), (ITEMS * draw.random(USERS * HAD) ** 2).astype(np.int64)))
    users = np.concatenate((np.arange(ITEMS) % USERS, np.repeat(np.arange(USERS), HAD)))
    log = pa.table({"user_id": users, "item_id": items}).group_by(["user_id", "item_id"]).aggregate([])
    rows = np.arange(ITEMS)
    stock = draw.random(ITEMS) < 0.8
    table = pa.table(
        {
            "item_id": rows,
            "title": [title(row) for row in range(ITEMS)],
            "category": rows % CATEGORIES,
            "in_stock": stock,
        }
    )
    models = {}
    for method in METHODS:
        options = {"embedding_size": 32, "epochs": 3, "batch_size": 4096, "learning_rate": 0.01, "validation": "no"}
        model = caged.Recommender(method, seed=seed, device="cpu", **options).fit(log, progress=False)
        saved = model.save(folder / f"{method}-model")
        pq.write_table(table, saved / "items.parquet")
        artefact_of_run(saved, folder / method, device="cpu", with_price=False)
        models[method] = model
    return models, table


class Truth:
    """Rankings of everybody by one model at every stand of the knob."""

    def __init__(self, model: caged.Recommender, seed: int) -> None:
        known, histories = people(seed)
        self._rankings: dict[tuple[Any, float], Ranking] = {}
        for knob in KNOBS:
            turned = model.adjusted(strength=knob)
            for table in (turned.recommend(known, ITEMS), turned.recommend_for(histories, ITEMS)):
                self._take(table, knob)

    def _take(self, table: pa.Table, knob: float) -> None:
        names, counts = np.unique(table["user_id"].to_numpy(zero_copy_only=False), return_counts=True)
        ordered = table.sort_by([("user_id", "ascending"), ("rank", "ascending")])
        items, scores = ordered["item_id"].to_numpy(), ordered["score"].to_numpy()
        ends = np.cumsum(counts)
        for name, start, end in zip(names.tolist(), ends - counts, ends, strict=True):
            self._rankings[name, knob] = Ranking(items[start:end], scores[start:end])

    def of(self, who: Any, knob: float) -> Ranking:
        return self._rankings[who, knob]


class Writer:
    """Good and bad questions, drawn by a seed."""

    def __init__(self, truths: Mapping[str, Truth], table: pa.Table, seed: int) -> None:
        self._truths = truths  # by version
        self._category, self._stock = (table[name].to_numpy(zero_copy_only=False) for name in ("category", "in_stock"))
        self._known, self._histories = people(seed)
        self._draw = np.random.default_rng([seed, 2])

    def good(self, count: int) -> list[Question]:
        kinds = ("known", "known", "history", "filter", "filter", "knob", "exclude", "batch")
        return [self._good(kinds[place % len(kinds)]) for place in range(count)]

    def _good(self, kind: str) -> Question:
        if kind == "batch":
            parts = [self._one(str(self._draw.choice(["known", "history", "filter", "knob"]))) for _ in range(BATCH)]
            wanted = {version: [part[1][version] for part in parts] for version in self._truths}
            return Question(kind, post("/recommend/batch", {"requests": [part[0] for part in parts]}), 200, wanted)
        request, lists = self._one(kind)
        return Question(kind, post("/recommend", request), 200, {version: [one] for version, one in lists.items()})

    def _one(self, kind: str) -> tuple[dict[str, Any], dict[str, Wanted]]:
        who: Any = int(self._draw.choice(self._known))
        request: dict[str, Any] = {"user_id": who}
        if kind == "history" or self._draw.random() < 0.3:
            who = str(self._draw.choice(list(self._histories)))
            request = {"history": [*self._histories[who], "unknown"]}
        k, knob, allowed = int(self._draw.choice([5, 10, 20, 50])), 0.0, None
        request["k"] = k
        if kind == "filter":
            category = int(self._draw.integers(CATEGORIES))
            request["filters"] = {"category": [category], "in_stock": True}
            allowed = (self._category == category) & self._stock
        elif kind == "knob":
            request["less_popular"] = knob = float(self._draw.choice(KNOBS))
        elif kind == "exclude":
            request["exclude"] = unwanted = self._draw.choice(ITEMS, 50, replace=False).tolist()
            allowed = ~np.isin(np.arange(ITEMS), unwanted)
        return request, {version: truth.of(who, knob).kept(allowed, k) for version, truth in self._truths.items()}

    def bad(self) -> list[Question]:
        """Each is refused with its own status; the last ones are given up half-way."""
        user = {"user_id": self._known[0]}
        refused: list[tuple[int, bytes]] = [
            (400, post("/recommend", b"{")),
            (400, post("/recommend/batch", b"\xff\xfe")),
            (404, post("/recommend", {"user_id": "nobody"})),
            (404, post("/recommend", {**user, "model": "other"})),
            (404, b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"),
            (404, b"GET /similar/none HTTP/1.1\r\nHost: x\r\n\r\n"),
            (405, b"GET /recommend HTTP/1.1\r\nHost: x\r\n\r\n"),
            (422, post("/recommend", {})),
            (422, post("/recommend", {**user, "k": -1})),
            (422, post("/recommend", {**user, "k": 10**6})),
            (422, post("/recommend", {**user, "colour": "red"})),
            (422, post("/recommend", {**user, "filters": {"colour": "red"}})),
            (422, post("/recommend", {**user, "less_popular": "much"})),
            (422, post("/recommend", {"history": ["none", 2**70]})),
            (422, post("/recommend/batch", {"requests": [user] * 1001})),
            (413, b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"),
        ]
        given_up = [post("/recommend", user)[:-3], b"POST /recommend HTTP/1.1\r\nHo"]
        return [Question(f"bad {status}", sent, status, {}) for status, sent in refused] + [
            Question("given up", sent, 0, {}) for sent in given_up
        ]


def post(path: str, body: Any) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content
