"""The items and people of one artefact as the explorer shows them: how popular, found by a few letters."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.arguments import described
from caged.data.ids import Array
from caged.data.popularity import USER_GROUPS, ItemGroups, UserGroups, popularity_order
from caged.errors import ConfigError
from caged.products.serve.catalogue import LONGEST, Catalogue
from caged.products.serve.model import ServedModel

FOUND = 8  # of each kind
SAMPLE = 12  # items that a new person can be built from without a search


class Shelf:
    def __init__(self, model: ServedModel) -> None:
        self.model = model
        self._catalogue = Catalogue(model)

    @cached_property
    def groups(self) -> ItemGroups:
        return ItemGroups.from_degrees(self.model.degrees)

    def items(self, rows: Array) -> list[dict[str, Any]]:
        """Identifiers as text: JavaScript rounds large integers."""
        model = self.model
        most = max(1.0, float(model.log_popularity.max(initial=0)))
        return [
            {
                "id": str(name),
                "title": title,
                "people": int(model.degrees[row]),
                "popular": bool(self.groups.popular[row]),
                "height": round(float(model.log_popularity[row]) / most, 3),  # of the popularity bar, 0..1
            }
            for row, name, title in zip(rows, model.items.at(rows), model.titles_at(rows), strict=True)
        ]

    def niche_share(self, rows: Array) -> float:
        return float(self.groups.niche[rows].mean()) if len(rows) else 0.0

    def person(self, user: int) -> dict[str, Any]:
        """What somebody has had, least popular first: that says most about a person."""
        history = self.model.seen(user)
        ordered = history[np.argsort(self.model.degrees[history], kind="stable")]
        return {
            "id": str(self.model.users[user]),
            "history": self.items(ordered),
            "niche_share": self.niche_share(history),
        }

    # ---------------------------------------------------------------- where to begin

    def starts(self) -> list[dict[str, Any]]:
        """Of each taste, somebody with a history of the usual length."""
        lengths = np.diff(np.asarray(self.model.arrays["seen_offsets"]))
        users, items = np.repeat(np.arange(len(lengths)), lengths), np.asarray(self.model.arrays["seen_items"])
        groups = UserGroups.from_interactions(users, items, len(lengths), self.groups)
        found = []
        for taste in USER_GROUPS:
            members = np.flatnonzero(groups.member(taste))
            if len(members):
                usual = members[np.argsort(lengths[members], kind="stable")[len(members) // 2]]
                found.append({"taste": taste, "id": str(self.model.users[int(usual)])})
        return found

    def sample(self) -> list[dict[str, Any]]:
        """Items from the whole range of popularity, most popular first."""
        order = popularity_order(self.model.degrees)
        places = np.unique(np.linspace(0, max(len(order) - 1, 0), SAMPLE).astype(int))[: len(order)]
        return self.items(order[places])

    # ---------------------------------------------------------------- finding

    def find(self, query: Any) -> dict[str, list[dict[str, Any]]]:
        """People by their id, items by id or title."""
        wanted = _checked(query)
        if not wanted:
            return {"people": [], "items": []}
        people = [
            {"id": str(self.model.users[row]), "items": len(self.model.seen(row))} for row in self._people(wanted)
        ]
        return {"people": people, "items": self.items(self._catalogue.search(wanted, limit=FOUND).items)}

    def _people(self, wanted: str) -> list[int]:
        """The very one first, then those whose id holds these letters."""
        holds = pc.match_substring(self._user_ids, wanted, ignore_case=True).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(np.asarray(holds, dtype=bool))[: FOUND + 1].tolist()
        exact = self.model.users.row(wanted)
        return [*([] if exact < 0 else [exact]), *(row for row in rows if row != exact)][:FOUND]

    @cached_property
    def _user_ids(self) -> pa.Array:
        return self.model.users.values.cast(pa.string())


def _checked(query: Any) -> str:
    if not isinstance(query, str) or len(query) > LONGEST:
        raise ConfigError(f"the search is {described(query)}; give text of at most {LONGEST} characters")
    return query.encode(errors="ignore").decode().strip()
