"""What all routes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from caged.errors import unknown
from caged.products.serve import schemas
from caged.products.serve.answers import UnknownModelError, source
from caged.products.serve.at_once import AtOnce
from caged.products.serve.gate import Gate
from caged.products.serve.lists import ItemQuestion, Question, batch_text, list_texts, similar_texts
from caged.products.serve.metrics import RequestMetrics
from caged.products.serve.requests import AskItem
from caged.products.serve.served import Current, Served
from caged.products.serve.settings import Settings
from caged.products.serve.together import Together


class Service:
    """Models, and the ways to their answers: at once, or through the gate."""

    def __init__(self, served: Mapping[str, Served], settings: Settings) -> None:
        self.served, self.settings = served, settings
        self.gate = Gate(settings.threads, settings.queue, settings.timeout_s)
        self.metrics = RequestMetrics()
        self._quick: AtOnce[Question, bytes] = AtOnce(list_texts)
        self._slow: Together[Question, bytes] = Together(self.gate, settings.queue, list_texts)
        self._similar: Together[ItemQuestion, bytes] = Together(self.gate, settings.queue, similar_texts)

    @property
    def inside(self) -> int:
        """Requests that run or wait."""
        return self.gate.inside + self._slow.waiting + self._similar.waiting

    def pick(self, name: str | None) -> Served:
        if name is None:
            return next(iter(self.served.values()))
        if name not in self.served:
            raise UnknownModelError(unknown("model", name, self.served))
        return self.served[name]

    async def one(self, request: schemas.Recommend) -> bytes:
        """The list for one person."""
        question = Question(self.pick(request.model).current, request)
        return await (self._quick if question.is_quick else self._slow).ask(question)

    async def many(self, request: schemas.Batch) -> bytes:
        """Lists for many people."""
        current = self.pick(request.model).current
        return await self.gate.run(lambda: batch_text(current, request.requests))

    async def similar(self, model: str | None, ask: AskItem, *, popularity: bool) -> bytes:
        """Items like another."""
        return await self._similar.ask(ItemQuestion(self.pick(model).current, ask, popularity))

    async def other(self, model: str | None, work: Callable[[Current], dict[str, Any]]) -> bytes:
        """In a thread of the gate, from the model as it is now; the JSON is made there, too."""
        current = self.pick(model).current
        return await self.gate.run(lambda: orjson.dumps({**source(current), **work(current)}))
