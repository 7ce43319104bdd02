"""Lists of a trained model, in the identifiers of the log and in the order in which they were asked for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import torch
import torch.nn.functional as F
from torch import Tensor

from caged.arguments import described, yes_or_no
from caged.data import IdMap
from caged.data.ids import Array, matched_type
from caged.data.readers.files import arrow_table
from caged.errors import ConfigError, DataError
from caged.evaluation.lists import Lists, check_k
from caged.evaluation.tables import recommendations_table
from caged.evaluation.topk import ScoreFunction, top_k
from caged.models import RelatesItems
from caged.runs.artefact import Artefact

logger = logging.getLogger("caged")

Unknown = Literal["error", "popular", "skip"]
UNKNOWN = get_args(Unknown)
NEVER = float("-inf")


def recommend(
    fitted: Artefact,
    user_ids: Any,
    k: int,
    *,
    unknown: Unknown,
    exclude_seen: bool,
    candidates: Any = None,
    exclude: Any = None,
) -> pa.Table:
    """`user_id, item_id, score, rank`; see `Recommender.recommend`."""
    _check_unknown(unknown)
    train = fitted.train
    k, exclude_seen = check_k(k, train.item_count), yes_or_no("exclude_seen", exclude_seen)
    allowed = _allowed(candidates, exclude, train.item_ids)
    asked = _asked_for(user_ids, train.user_ids)
    if len(asked.strangers) and unknown == "error":
        raise DataError(
            f"{len(asked.strangers)} of the users asked for are unknown, e.g. {asked.strangers[0].as_py()!r}; "
            'leave them out, or use unknown="popular" or unknown="skip" (--unknown popular, --unknown skip)'
        )
    scorer: ScoreFunction = fitted.scorer()
    if allowed is not None:
        scorer = _only(scorer, torch.from_numpy(~allowed).to(fitted.device))
    lists = top_k(scorer, asked.rows, k, seen=fitted.seen if exclude_seen else None, device=fitted.device)
    tables = [recommendations_table(lists, train.user_ids, train.item_ids)]
    places = [_places(asked.rows, asked.places, lists.flat().users)]
    if len(asked.strangers) and unknown == "popular":
        popular = _popular(fitted, len(asked.strangers), k, allowed)
        tables.append(_table_of_strangers(popular, asked.strangers, train.item_ids, tables[0].schema))
        places.append(asked.stranger_places[popular.flat().users])
    return _in_order(pa.concat_tables(tables), np.concatenate(places))


def similar_items(name: str, fitted: Artefact, item_ids: Any, k: int) -> pa.Table:
    """`item_id, similar_item_id, score, rank`; see `Recommender.similar_items`."""
    train = fitted.train
    k = check_k(k, train.item_count - 1)
    asked = _asked_for(item_ids, train.item_ids)
    if len(asked.strangers):
        raise DataError(
            f"{len(asked.strangers)} of the items asked for are unknown, e.g. {asked.strangers[0].as_py()!r}; leave "
            f"them out"
        )
    related = _relation(name, fitted)

    def others(items: Tensor) -> Tensor:
        return related(items).scatter(1, items.unsqueeze(1), NEVER)  # an item is not its own neighbour

    with torch.no_grad():
        lists = top_k(others, asked.rows, k, device=fitted.device)
    table = recommendations_table(lists, train.item_ids, train.item_ids)
    table = _in_order(table, _places(asked.rows, asked.places, lists.flat().users))
    return table.rename_columns(["item_id", "similar_item_id", "score", "rank"])


def with_titles(table: pa.Table, titles: Mapping[Any, str]) -> pa.Table:
    """With a column `title` behind `item_id`, null where an item has none."""
    by_name = {str(item): title for item, title in titles.items()}
    found = pa.array([by_name.get(str(item)) for item in table["item_id"].to_pylist()], type=pa.string())
    return table.add_column(table.column_names.index("item_id") + 1, "title", found)


def titles_given(titles: Any) -> dict[Any, str]:
    """From a mapping of item id to title, or a frame with these columns."""
    if isinstance(titles, Mapping):
        return {item: str(title) for item, title in titles.items() if title is not None}
    if not hasattr(titles, "__arrow_c_stream__"):
        raise ConfigError(
            f"titles is {described(titles)}; give True, a dict of item id to title, or a frame with the columns "
            f"item_id and title"
        )
    table = arrow_table(titles)
    for column in ("item_id", "title"):
        if table.column_names.count(column) != 1:
            raise DataError(f"the frame of titles needs one column '{column}', found: {', '.join(table.column_names)}")
    pairs = zip(table["item_id"].to_pylist(), table["title"].to_pylist(), strict=True)
    return {item: str(title) for item, title in pairs if title is not None}


# ---------------------------------------------------------------- who and what was asked for


class _Asked(NamedTuple):
    """Distinct identifiers in the order of their first mention: rows of the known ones, and the others."""

    rows: Array
    places: Array  # of the known ones among all that were asked for
    strangers: pa.Array
    stranger_places: Array


def _asked_for(ids: Any, known: IdMap) -> _Asked:
    """All that are known, in the order of their rows, where `ids` is None."""
    if ids is None:
        everyone = np.arange(len(known))
        return _Asked(everyone, everyone, known.values.slice(0, 0), everyone[:0])
    wanted, rows_of_wanted = IdMap.numbered([ids] if isinstance(ids, str | int | np.integer) else ids)
    _, first = np.unique(rows_of_wanted, return_index=True)
    distinct = wanted.external(rows_of_wanted[np.sort(first)])
    rows = known.rows(distinct)
    strangers = distinct.filter(pa.array(rows < 0))
    if strangers.type != known.values.type:  # text that names integers becomes what it names, integers become text
        typed = matched_type(strangers, known.values.type)
        strangers = strangers if typed.null_count else typed
    return _Asked(rows[rows >= 0], np.flatnonzero(rows >= 0), strangers, np.flatnonzero(rows < 0))


def _places(rows: Array, places: Array, listed: Array) -> Array:
    """For each listed row its place in the order asked for."""
    order = np.argsort(rows)
    return np.asarray(places[order][np.searchsorted(rows[order], listed)])


def _in_order(table: pa.Table, places: Array) -> pa.Table:
    if bool((places[1:] >= places[:-1]).all()):
        return table
    return table.take(np.argsort(places, kind="stable"))


def _allowed(candidates: Any, exclude: Any, known: IdMap) -> Array | None:
    """Which items may be recommended, (N,) of bool; None: all."""
    if candidates is None and exclude is None:
        return None
    allowed = np.full(len(known), candidates is None)
    if candidates is not None:
        rows = _rows_of_list("candidates", candidates, known)
        if len(rows) == 0:
            raise DataError("none of the candidates is an item of this model; give ids as the log writes them")
        allowed[rows] = True
    if exclude is not None:
        allowed[_rows_of_list("exclude", exclude, known)] = False
    if not allowed.any():
        raise DataError("exclude leaves none of the items to recommend; leave some of them out of it")
    return allowed


def _rows_of_list(name: str, ids: Any, known: IdMap) -> Array:
    """Rows of the known ones; how many are not known is told."""
    asked = _asked_for(ids, known)
    if len(asked.strangers):
        total = len(asked.rows) + len(asked.strangers)
        logger.warning(
            "%d of the %d ids in %s are unknown to the model and were ignored, e.g. %r",
            *(len(asked.strangers), total, name, asked.strangers[0].as_py()),
        )
    return asked.rows


def _only(scorer: ScoreFunction, never: Tensor) -> ScoreFunction:
    """Before ranking, so that the lists stay as long as was asked for."""

    def score(users: Tensor, /) -> Tensor:
        return scorer(users).masked_fill(never, NEVER)

    return score


def _check_unknown(value: Any) -> None:
    if not isinstance(value, str) or value not in UNKNOWN:
        raise ConfigError(f"unknown is {described(value)}; allowed: {', '.join(UNKNOWN)}")


# ---------------------------------------------------------------- users that training did not know


def _popular(fitted: Artefact, users: int, k: int, allowed: Array | None) -> Lists:
    """The same list for each: the items with most training users among those allowed."""
    degrees = fitted.train.item_degrees
    choice = np.arange(len(degrees)) if allowed is None else np.flatnonzero(allowed)
    best = choice[np.argsort(-degrees[choice], kind="stable")][:k]
    return Lists(
        users=np.arange(users),
        items=np.tile(best, (users, 1)),
        scores=np.tile(degrees[best].astype(np.float32), (users, 1)),
    )


def _table_of_strangers(lists: Lists, strangers: pa.Array, item_ids: IdMap, schema: pa.Schema) -> pa.Table:
    table = recommendations_table(lists, IdMap(strangers), item_ids)
    if table.schema.field("user_id").type != schema.field("user_id").type:
        raise DataError("the unknown users have ids of another type than the known ones; use integers or text for both")
    return table


# ---------------------------------------------------------------- items beside items


def _relation(name: str, fitted: Artefact) -> ScoreFunction:
    """(b,) item rows -> (b, N): how near each item is."""
    if isinstance(fitted.method, RelatesItems):
        return fitted.method.related
    vectors = fitted.method.scorer().vectors
    if vectors is None or vectors.items.shape[1] == 1:
        raise ConfigError(
            f"{name} has neither item vectors nor item-item weights to compare; use a method that has, such as "
            f"lightgcn or ease"
        )
    directions = F.normalize(vectors.items, dim=1)
    return lambda items, /: directions.index_select(0, items) @ directions.T
