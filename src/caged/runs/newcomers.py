"""Recommendations for people who were not in training, from what they have had."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from caged.arguments import described
from caged.data import IdMap
from caged.data.ids import Array
from caged.data.readers.columns import Columns, need_column
from caged.data.readers.files import arrow_table
from caged.errors import ConfigError, DataError
from caged.evaluation.adjust.of_scores import log_popularity
from caged.evaluation.lists import Lists, check_k
from caged.evaluation.tables import recommendations_table
from caged.evaluation.topk import top_k
from caged.models import FoldsIn
from caged.models.item_item import HistoryScorer
from caged.runs.artefact import Artefact

logger = logging.getLogger("caged")


@dataclass(frozen=True, eq=False)
class Histories:
    """People in the order given: names, and the rows of what each has had, one after the other."""

    names: pa.Array
    items: Array
    lengths: Array

    def had(self, place: int, device: torch.device) -> Tensor:
        """Rows of what one of them has had."""
        return torch.from_numpy(self.items[self._offsets[place] : self._offsets[place + 1]]).to(device)

    @cached_property
    def _offsets(self) -> Array:
        return np.concatenate(([0], np.cumsum(self.lengths)))


def recommend_for(name: str, fitted: Artefact, histories: Any, k: int, *, exclude_seen: bool) -> pa.Table:
    """`user_id, item_id, score, rank`; see `Recommender.recommend_for`."""
    train = fitted.train
    k = check_k(k, train.item_count)
    people = known_histories(histories, train.item_ids)
    score = _score_function(name, fitted, people)
    if exclude_seen:
        score = _without_history(score, people)
    lists = top_k(score, np.arange(len(people.names)), k, device=fitted.device)
    return _table(lists, people.names, train.item_ids)


def known_histories(histories: Any, known: IdMap) -> Histories:
    """Histories in rows; items that the model does not know are passed over and named, a history of none is refused."""
    pairs = list(_pairs(histories))
    if not pairs:
        raise ConfigError("histories is empty; give at least one person with at least one item")
    names = pa.array([name for name, _ in pairs])
    listed = [list(items) for _, items in pairs]
    wanted, numbers = IdMap.numbered([item for items in listed for item in items] or [""])
    rows = known.rows(wanted.values)[numbers]
    owners = np.repeat(np.arange(len(listed)), [len(items) for items in listed])
    rows = rows[: len(owners)]
    if bool((rows < 0).any()):
        strangers = wanted.external(np.unique(numbers[: len(owners)][rows < 0])).to_pylist()
        shown = ", ".join(repr(one) for one in strangers[:5])
        logger.warning(
            "%d items of the histories are unknown to the model and were ignored: %s%s",
            *(len(strangers), shown, ", ..." if len(strangers) > 5 else ""),
        )
    # Each item of a person once, ascending: a history is a set.
    keys = np.unique(owners[rows >= 0] * np.int64(max(len(known), 1)) + rows[rows >= 0])
    owners, rows = np.divmod(keys, max(len(known), 1))
    lengths = np.bincount(owners, minlength=len(names))
    if bool((lengths == 0).any()):
        nobody = names[int(np.flatnonzero(lengths == 0)[0])].as_py()
        raise DataError(
            f"the model knows none of the items of {nobody!r}, so there is nothing to go by; leave such people out, or "
            f"recommend bestsellers to them"
        )
    return Histories(names, rows, lengths)


def _pairs(histories: Any) -> Iterator[tuple[Any, Sequence[Any]]]:
    """A mapping of name to items, or a table of user_id and item_id."""
    if isinstance(histories, Mapping):
        for name, items in histories.items():
            if isinstance(items, str | bytes | int) or not hasattr(items, "__iter__"):
                raise ConfigError(f"the history of {name!r} is {described(items)}; give a list of item ids")
            yield name, list(items)
        return
    if not hasattr(histories, "__arrow_c_stream__"):
        raise ConfigError(
            f"histories is {described(histories)}; give a dict of a name to a list of item ids, or a table with the "
            f"columns user_id and item_id"
        )
    table = arrow_table(histories)
    for column in (Columns().user, Columns().item):
        need_column(column, table.column_names, "the table of histories", fix="name its columns user_id and item_id")
    grouped: dict[Any, list[Any]] = {}
    for name, item in zip(table["user_id"].to_pylist(), table["item_id"].to_pylist(), strict=True):
        grouped.setdefault(name, []).append(item)
    yield from grouped.items()


def _score_function(name: str, fitted: Artefact, people: Histories) -> Any:
    """(b,) places of people -> (b, N) scores, popularity taken out as the model has it."""
    scorer, method = fitted.method.scorer(), fitted.method
    items, lengths = (torch.from_numpy(part).to(fitted.device) for part in (people.items, people.lengths))
    if isinstance(scorer, HistoryScorer):
        plain = _of_item_weights(scorer, people, fitted)
    else:
        if not isinstance(method, FoldsIn) or scorer.vectors is None:
            raise ConfigError(f"{name} has no way to give new people a vector; use a method that has, such as lightgcn")
        fold_in = method.fold_in()
        if fold_in.note:
            logger.warning("%s: %s", name, fold_in.note)
        with torch.no_grad():
            vectors = fold_in.vectors(items, lengths)
        table = scorer.vectors.items

        def plain(places: Tensor) -> Tensor:
            return vectors.index_select(0, places) @ table.T

    return _adjusted(plain, fitted, people)


def _of_item_weights(scorer: HistoryScorer, people: Histories, fitted: Artefact) -> Any:
    def plain(places: Tensor) -> Tensor:
        rows = torch.zeros(len(places), fitted.train.item_count, device=fitted.device)
        for row, place in enumerate(places.tolist()):
            rows[row, people.had(place, fitted.device)] = 1.0
        return scorer.scores_of(rows)

    return plain


def _adjusted(plain: Any, fitted: Artefact, people: Histories) -> Any:
    """`degree` of an adjusted model: the spread is that over what the person has not had."""
    adjustment = fitted.adjustment
    if adjustment is None or adjustment.is_neutral:
        return plain
    if adjustment.form != "degree":
        raise ConfigError(
            f"this model was adjusted by form '{adjustment.form}', which is not there for new people; use form degree"
        )

    def score(places: Tensor) -> Tensor:
        scores: Tensor = plain(places)
        spread = []
        for row, place in enumerate(places.tolist()):
            left = torch.ones(scores.shape[1], dtype=torch.bool, device=scores.device)
            left[people.had(place, scores.device)] = False
            spread.append(scores[row, left].double().std(correction=0))
        spreads = torch.stack(spread).to(scores.dtype).nan_to_num(0.0).unsqueeze(1)
        return scores - adjustment.strength * spreads * log_popularity(fitted.train, scores)

    return score


def _without_history(score: Any, people: Histories) -> Any:
    def masked(places: Tensor) -> Tensor:
        scores: Tensor = score(places).clone()
        for row, place in enumerate(places.tolist()):
            scores[row, people.had(place, scores.device)] = -torch.inf
        return scores

    return masked


def _table(lists: Lists, names: pa.Array, item_ids: IdMap) -> pa.Table:
    table = recommendations_table(lists, IdMap.range(len(names)), item_ids)
    return table.set_column(0, "user_id", names.take(table["user_id"].combine_chunks()))
