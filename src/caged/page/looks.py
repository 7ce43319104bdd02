"""The look of a method: the same colour, marker and pattern in every chart of every page."""

from __future__ import annotations

from collections.abc import Sequence

from caged.models import METHODS
from caged.page.svg import COLOURS


def looks_of(methods: Sequence[str]) -> list[int]:
    """One per entry of a chart, all different.

    A method has the look that the registry gives it. What nobody registered, and a second entry of the same method,
    gets one that no method has, in a colour that is still free here where there is one.

    >>> looks_of(["caged", "lightgcn"]) == [METHODS["caged"].look, METHODS["lightgcn"].look]
    True
    >>> len(set(looks_of(["ours", "caged", "theirs", "caged"])))
    4
    """
    looks: dict[int, int] = {}  # by place
    for place, name in enumerate(methods):
        if name in METHODS and METHODS[name].look not in looks.values():
            looks[place] = METHODS[name].look
    spare = 1 + max(known.look for known in METHODS.values())
    for place in range(len(methods)):
        if place in looks:
            continue
        taken = {look % COLOURS for look in looks.values()}
        unused = [look for look in range(spare, spare + 2 * COLOURS) if look not in looks.values()]
        looks[place] = next((look for look in unused if look % COLOURS not in taken), unused[0])
    return [looks[place] for place in range(len(methods))]
