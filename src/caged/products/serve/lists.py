"""From requests for lists to the bodies of their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import orjson

from caged.errors import CagedError
from caged.products.serve import schemas
from caged.products.serve.answers import refusal_json, source
from caged.products.serve.engine import Answer
from caged.products.serve.requests import AskItem
from caged.products.serve.served import Current
from caged.products.serve.texts import Shown, answer_text, items_json

QUICK_WORK = 2**20  # numbers to multiply: with 64 for an item, 16,000 items; a fraction of a millisecond
QUICK_IDS = 200  # to look up


class Question(NamedTuple):
    """A list that somebody wants, from the model that was there when the request came."""

    current: Current
    request: schemas.OnePerson

    @property
    def is_quick(self) -> bool:
        """Whether to answer costs less than to hand the question to a thread and back."""
        model, asked = self.current.engine.model, self.request
        ids = sum(len(names) for names in (asked.history, asked.exclude, asked.candidates) if names)
        return (
            model.manifest.kind == "vectors"
            and len(model.items) * model.manifest.width <= QUICK_WORK
            and ids <= QUICK_IDS
        )


class ItemQuestion(NamedTuple):
    """Items like another that somebody wants."""

    current: Current
    ask: AskItem
    popularity: bool


AnyQuestion = TypeVar("AnyQuestion", Question, ItemQuestion)


def list_texts(questions: Sequence[Question]) -> list[bytes | Exception]:
    """The bodies of answers, or why there is none; questions to one model in one batch."""

    def of_model(current: Current, asked: Sequence[Question]) -> list[bytes | CagedError]:
        begin = _beginning(current)
        found = _texts(current, [one.request for one in asked])
        return [one if isinstance(one, CagedError) else begin + one[1:] for one in found]

    return _by_model(questions, of_model)


def similar_texts(questions: Sequence[ItemQuestion]) -> list[bytes | Exception]:
    """The same for items like others."""

    def of_model(current: Current, asked: Sequence[ItemQuestion]) -> list[bytes | CagedError]:
        found = current.engine.similar_batch([one.ask for one in asked])
        return [
            answer if isinstance(answer, CagedError) else _similar_text(one, answer)
            for one, answer in zip(asked, found, strict=True)
        ]

    return _by_model(questions, of_model)


def _similar_text(asked: ItemQuestion, answer: Answer) -> bytes:
    model = asked.current.engine.model
    shown = items_json(model, answer.items, answer.scores, popularity=asked.popularity)
    return orjson.dumps({**source(asked.current), "item_id": asked.ask.item_id, "items": shown})


def _by_model(
    questions: Sequence[AnyQuestion],
    texts: Callable[[Current, Sequence[AnyQuestion]], Sequence[bytes | CagedError]],
) -> list[bytes | Exception]:
    found: dict[int, bytes | Exception] = {}
    for current in {id(one.current): one.current for one in questions}.values():
        places = [place for place, one in enumerate(questions) if one.current is current]
        found |= zip(places, texts(current, [questions[place] for place in places]), strict=True)
    return [found[place] for place in range(len(questions))]


def batch_text(current: Current, requests: Sequence[schemas.OnePerson]) -> bytes:
    """The body of the answer to many."""
    found = _texts(current, requests)
    answers = [orjson.dumps(refusal_json(one)) if isinstance(one, CagedError) else one for one in found]
    return b'%b"answers":[%b]}' % (_beginning(current), b",".join(answers))


def _beginning(current: Current) -> bytes:
    """Of an object that says who answers."""
    return orjson.dumps(source(current))[:-1] + b","


def _texts(current: Current, requests: Sequence[schemas.OnePerson]) -> list[bytes | CagedError]:
    asks = [one.ask() for one in requests]
    found = current.engine.recommend_batch(asks)
    shown = [
        Shown(answer.items, answer.scores, one.titles, one.popularity)
        for one, answer in zip(requests, found, strict=True)
        if not isinstance(answer, CagedError)
    ]
    texts = iter(current.texts.of(shown))
    return [
        answer
        if isinstance(answer, CagedError)
        else answer_text(next(texts), current.engine.strength(ask), answer.unknown_items)
        for ask, answer in zip(asks, found, strict=True)
    ]
