"""How metric keys name the groups that somebody chose.

    recall@20/genre=Drama       a group of items: family=group
    recall@20/user:age=18-24    a group of users
    rsp@20/genre                all groups of a family together

Characters that would end a key, or that nobody sees, are written as in a web address: `Film%20Noir`, `a%2Fb`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, unquote

USER = "user:"
_RESERVED = frozenset('<>=%/@,:"\\`')


class GroupName(NamedTuple):
    """A group, or with `group` None a whole family."""

    family: str
    group: str | None = None
    of_users: bool = False

    def __str__(self) -> str:
        named = "" if self.group is None else f"={quoted(self.group)}"
        return f"{USER if self.of_users else ''}{quoted(self.family)}{named}"

    @classmethod
    def parse(cls, text: str) -> GroupName:
        """What a key says; plain spaces and the like are understood too.

        >>> GroupName.parse("genre=Film Noir"), str(GroupName.parse("genre=Film Noir"))
        (GroupName(family='genre', group='Film Noir', of_users=False), 'genre=Film%20Noir')
        >>> GroupName.parse("user:age").of_users
        True
        """
        family, equals, group = text.removeprefix(USER).partition("=")
        return cls(unquote(family), unquote(group) if equals else None, text.startswith(USER))


def quoted(text: str) -> str:
    """
    >>> quoted("Children's"), quoted("a/b, c"), quoted("\\u202e")
    ("Children's", 'a%2Fb%2C%20c', '%E2%80%AE')
    """
    return "".join(
        one if one.isprintable() and not one.isspace() and one not in _RESERVED else quote(one, safe="") for one in text
    )


@dataclass(frozen=True)
class GroupNames:
    """Which groups there are, as keys name them: by family, in order; and whether the items have vectors."""

    items: Mapping[str, Sequence[str]] = field(default_factory=dict)
    users: Mapping[str, Sequence[str]] = field(default_factory=dict)
    vectors: bool = False

    @property
    def of_items(self) -> list[str]:
        return [group for groups in self.items.values() for group in groups]

    @property
    def of_users(self) -> list[str]:
        return [group for groups in self.users.values() for group in groups]


NONE_CHOSEN = GroupNames()
