"""Which columns of a table of lists are users, items, scores and ranks; libraries have names of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from caged.data.readers.columns import Columns, listed, need_column, refuse_repeated
from caged.errors import DataError

# As other libraries write them, the likelier first; compared in lower case without underscores.
USERS = ("userid", "user", "uid", "qid", "queryid")
ITEMS = ("itemid", "item", "iid", "docid", "docno")
SCORES = ("score", "prediction", "est", "relevance", "rating")
RANKS = ("rank", "position")
NESTED_ITEMS = ("items", "recommendations", "recs", "itemids", "recitems")
NESTED_SCORES = ("scores", "predictions", "ratings", "recscores")


class Chosen(NamedTuple):
    """The columns that are read; score and rank are absent where a list is ordered by its places."""

    user: str
    item: str
    score: str | None
    rank: str | None

    @property
    def names(self) -> list[str]:
        return [name for name in self if name is not None]


@dataclass(frozen=True)
class ListColumns(Columns):
    """A user, an item or a list of items, and what orders a list: score, rank, or the places of a list of items.

    `user` and `item` are the names of the logs, which lists mostly share. Whoever names a score or a rank wants it
    alone, even if the table has the other one too.
    """

    list_user: str | None = None
    list_item: str | None = None
    score: str | None = None
    rank: str | None = None

    def find(self, found: Sequence[str], where: str, *, hint: str = "") -> list[str]:
        return self.chosen(found, where, hint=hint).names

    def chosen(self, found: Sequence[str], where: str, *, hint: str = "") -> Chosen:
        refuse_repeated(found, where)
        user = self._named("user", self.list_user, (self.user, Columns.user), USERS, found, where, hint)
        item = self._named("item", self.list_item, (self.item, Columns.item), ITEMS + NESTED_ITEMS, found, where, hint)
        score, rank = self._ordering(found, where)
        if score is None and rank is None and _plain(item) not in NESTED_ITEMS and item != self.list_item:
            raise no_order(where, found)
        return Chosen(user, item, score, rank)

    def fields(self, found: Sequence[str], where: str) -> Chosen:
        """The same of the entries of a nested list, whose user stands beside it."""
        refuse_repeated(found, where)
        item = self._named("item", None, (self.item, Columns.item), ITEMS, found, where, "")
        return Chosen("", item, *self._ordering(found, where, named=False))

    def _named(
        self,
        role: str,
        asked: str | None,
        usual: Sequence[str],
        known: Sequence[str],
        found: Sequence[str],
        where: str,
        hint: str,
    ) -> str:
        fix = f"{'or ' if hint else ''}name the right one with --list-{role}-column (list_{role}_column= in Python)"
        if asked is not None:
            need_column(asked, found, where, fix=fix, hint=hint)
            return asked
        for name in usual:
            if name in found:
                return name
        alike = _first(known, found, where, fix)
        if alike is None:
            need_column(usual[0], found, where, fix=fix, hint=hint)
        return str(alike)

    def _ordering(self, found: Sequence[str], where: str, *, named: bool = True) -> tuple[str | None, str | None]:
        if named and (self.score is not None or self.rank is not None):
            for role, name in (("score", self.score), ("rank", self.rank)):
                if name is not None:
                    need_column(name, found, where, fix=f"name the right one with --{role}-column")
            return self.score, self.rank
        usual = [name if name in found else None for name in ("score", "rank")]
        if any(usual):
            return usual[0], usual[1]
        # Only now: `rating` beside `rank` is rather what somebody gave than what was predicted.
        fix = "name the right one with --score-column or --rank-column"
        return _first((*SCORES, *NESTED_SCORES), found, where, fix), _first(RANKS, found, where, fix)

    def note(self, chosen: Chosen) -> str | None:
        """A sentence where columns were taken for what they are by a well-known name."""
        asked = (self.list_user or self.user, self.list_item or self.item, self.score, self.rank)
        usual = (Columns.user, Columns.item, "score", "rank")
        taken = [
            f"'{name}' as the {role}"
            for role, name, own, default in zip(("user", "item", "score", "rank"), chosen, asked, usual, strict=True)
            if name is not None and name not in (own, default)
        ]
        if not taken:
            return None
        return (
            f"The lists have no columns of the usual names: {', '.join(taken)} was taken by its name; name others with "
            f"--list-user-column, --list-item-column, --score-column or --rank-column."
        )


def no_order(where: str, found: Sequence[str]) -> DataError:
    return DataError(
        f"{where} has neither 'score' nor 'rank', found: {listed(found)}; nothing says which item comes first, add one "
        f"of the two columns, name the one it has with --score-column or --rank-column, or, if a column holds whole "
        f"lists in order, name it with --list-item-column"
    )


def _first(known: Sequence[str], found: Sequence[str], where: str, fix: str) -> str | None:
    """The column with the first of the known names; two spellings of one name are an error."""
    for name in known:
        alike = [one for one in found if _plain(one) == name]
        if len(alike) > 1:
            raise DataError(f"{where} has the columns {listed(alike)}, which could be the same thing; {fix}")
        if alike:
            return alike[0]
    return None


def _plain(name: str) -> str:
    return name.lower().replace("_", "")
