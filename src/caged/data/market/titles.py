"""Names of items and genres, so that a list of recommendations can be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def _words(text: str) -> list[str]:
    return text.split()


_ADJECTIVES = _words(
    "Amber Ancient Blue Borrowed Bright Broken Burning Careless Clockwork Cold Copper Crimson Crooked Distant Drifting "
    "Electric Empty Endless Faithful Fallen Final Forgotten Frozen Gentle Golden Hidden Hollow Honest Hungry Iron "
    "Last Little Lonely Lost Midnight Paper Patient Quiet Restless Rising Salt Scarlet Secret Seventh Silent Silver "
    "Stolen Velvet Wandering Winter"
)
_NOUNS = _words(
    "Archive Arrow Atlas Avenue Balcony Bell Bridge Cage Canal Carnival Castle Circus Compass Corridor Crossing "
    "Diamond Doctor Dragon Echo Engine Falcon Ferry Fortune Garden Gate Ghost Harbour Heir Highway Horizon Hotel "
    "Island Kingdom Lantern Letter Lighthouse Machine Map Mirror Mountain Ocean Orchard Piano Promise Queen Radio "
    "River Sailor Season Shadow Signal Station Stranger Summer Telescope Theatre Thief Tower Voyage Window"
)
_GENRES = _words(
    "noir comedy western fantasy horror romance documentary adventure mystery musical thriller family animation "
    "history war sport biography satire crime fable travel opera heist space"
)

_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


def genre_names(count: int) -> list[str]:
    """The first `count` genre names; numbered from the second time on."""
    return _numbered(_GENRES, count)


def item_titles(count: int, rng: np.random.Generator) -> list[str]:
    """`count` different titles: every adjective with every noun, shuffled; numbered when used up."""
    pairs = rng.permutation(len(_ADJECTIVES) * len(_NOUNS))
    first, second = np.divmod(pairs, len(_NOUNS))
    return _numbered([f"{_ADJECTIVES[a]} {_NOUNS[n]}" for a, n in zip(first, second, strict=True)], count)


def roman(number: int) -> str:
    """
    >>> [roman(number) for number in (2, 4, 9, 14, 1990)]
    ['II', 'IV', 'IX', 'XIV', 'MCMXC']
    """
    text = ""
    for value, letters in _ROMAN:
        times, number = divmod(number, value)
        text += letters * times
    return text


def _numbered(names: Sequence[str], count: int) -> list[str]:
    """
    >>> _numbered(["a", "b"], 5)
    ['a', 'b', 'a II', 'b II', 'a III']
    """
    cycles = (divmod(place, len(names)) for place in range(count))
    return [names[which] if cycle == 0 else f"{names[which]} {roman(cycle + 1)}" for cycle, which in cycles]
