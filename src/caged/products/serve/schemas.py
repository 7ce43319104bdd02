"""Requests and answers as the OpenAPI document has them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from pydantic.config import JsonDict

from caged.products.serve.requests import Ask

Id = StrictStr | StrictInt
Value = StrictStr | StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)] | StrictBool
Knob = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]

KNOWN: JsonDict = {"user_id": "ann", "k": 10}
NEW: JsonDict = {
    "history": ["blue-shoes", "green-hat"],
    "k": 5,
    "filters": {"category": ["shoes", "hats"], "in_stock": True},
    "less_popular": 0.3,
    "popularity": True,
}


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OnePerson(Request):
    """Who asks, and for what: exactly one of `user_id` and `history` says who."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [KNOWN, NEW]})

    user_id: Id | None = Field(None, description="Somebody who was in training.")
    history: list[Id] | None = Field(
        None, description="Or what somebody new has had. Items that the model does not know are named in the answer."
    )
    k: StrictInt = Field(20, ge=1, description="How many items; fewer come back where fewer are allowed.")
    # Made for every request; a default of its own would be copied for every request, which takes longer.
    exclude: list[Id] = Field(
        default_factory=list, description="Items never to be shown.", json_schema_extra={"default": []}
    )
    candidates: list[Id] | None = Field(None, description="Show only these.")
    filters: dict[str, Value | list[Value]] = Field(
        default_factory=dict,
        description="Attributes that items must have; of several values one is enough. Applied before ranking.",
        json_schema_extra={"default": {}},
    )
    less_popular: Knob | None = Field(
        None, description="0: as trained; 1: popularity taken out. Left out: as the artefact stands, see /about."
    )
    exclude_seen: StrictBool = Field(True, description="Leave out what the person has had.")
    titles: StrictBool = Field(True, description="Titles of the items, where the artefact has them.")
    popularity: StrictBool = Field(False, description="How many people had each item, and its rank by that.")

    def ask(self) -> Ask:
        return Ask(
            self.user_id,
            self.history,
            self.k,
            self.exclude,
            self.candidates,
            self.filters,
            self.less_popular,
            self.exclude_seen,
        )


class Recommend(OnePerson):
    model: str | None = Field(None, description="Name of the artefact; left out: the first one.")


class Batch(Request):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"requests": [KNOWN, NEW]}]})

    requests: list[OnePerson]
    model: str | None = Field(None, description="Name of the artefact; left out: the first one.")


class Swap(Request):
    model: str | None = Field(None, description="Name of the artefact to load again; left out: the first one.")


class Item(BaseModel):
    item_id: Id
    score: float | None = Field(None, description="Comparable within one list only.")
    title: str | None = None
    popularity: int | None = Field(None, description="People who had it in training.")
    popularity_rank: int | None = Field(None, description="1 for the item that most people had.")


class Source(BaseModel):
    model: str = Field(description="Name of the artefact that answered.")
    version: str = Field(description="Of that artefact; another one after a swap.")


class Answered(BaseModel):
    items: list[Item] = Field(description="Best first.")
    less_popular: float = Field(description="Where the knob stood.")
    unknown_items: list[Id] = Field(description="Of the history: not known to the model and passed over.")


class Recommended(Source, Answered):
    pass


class Problem(BaseModel):
    error: str = Field(description="One sentence.")


class RefusedInBatch(Problem):
    status: int = Field(description="What this request would have got alone.")


class RecommendedBatch(Source):
    answers: list[Answered | RefusedInBatch] = Field(description="In the order of the requests.")


class SimilarItems(Source):
    item_id: Id
    items: list[Item] = Field(description="Nearest first.")


class Reason(Item):
    contribution: float = Field(description="What this item of the history adds to the score.")


class Explained(Source):
    item_id: Id
    title: str | None = None
    score: float = Field(description="As trained: without the knob.")
    available: bool = Field(description="Whether the score can be taken apart.")
    reasons: list[Reason] = Field(description="Items of the history, largest contribution first.")
    history: int = Field(description="Items that the person has had; reasons may name fewer.")
    rest: float | None = Field(description="Of the score: what the history does not account for.")
    note: str = Field(description="What is not available, or what the figures leave out; else empty.")


class ItemPage(Source):
    total: int = Field(description="Items found.")
    offset: int
    items: list[Item] = Field(description="An exact id first, then the most popular.")


class About(BaseModel):
    default: str = Field(description="The artefact that is meant where a request names none.")
    models: list[dict[str, Any]]
    limits: dict[str, int]


class State(BaseModel):
    status: str
