"""A table that fits a terminal of a given width without breaking a number or a word.

The first layout that fits is taken:

    columns      as they are, with long texts and headings wrapped at their blanks, or without the spare ones
    transposed   few rows of many numbers: the rows become columns
    stacked      the columns in several tables below each other, each with the columns that name the row
    blocks       one block per row, one line per cell

Only a single word that is wider than the terminal (an address, a path) sticks out: broken, nobody could copy it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from caged.page.text_table import GAP, Row, figure_columns, is_figure, padded

COMFORTABLE = 20  # the least width of a column whose texts are wrapped
RUNNING_TEXT = 32  # cells beyond this are read as sentences, not compared down a column
MOST_TRANSPOSED = 6  # rows that become columns
INDENT = "  "
RULE = "-"


class Line(NamedTuple):
    text: str
    heading: bool = False  # what a terminal shows in bold


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken at blanks only.

    >>> wrapped("the most popular fifth of the items", 12)
    ['the most', 'popular', 'fifth of the', 'items']
    """
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def fitted_lines(headers: Row, rows: Sequence[Row], width: int, *, keys: int = 1, spare: Row = ()) -> list[Line]:
    """The lines of a table on a terminal of `width`.

    The first `keys` columns say what a row is about. The columns called `spare` are left out where that makes the
    others fit, the first of them first; a last line says so.
    """
    table = _Table(headers, rows)
    for count in range(len(spare) + 1):
        fewer = table.without(spare[:count])
        widths = fewer.widths_within(width)
        if widths is not None:
            return [*_drawn(fewer, widths), *_left_out(spare[:count], width)]
    if not table.has_sentences:
        turned = table.transposed()
        turned_widths = turned.widths_within(width) if keys == 1 and len(rows) <= MOST_TRANSPOSED else None
        if turned_widths is not None and not turned.has_sentences:
            return list(_drawn(turned, turned_widths))
        parts = table.stacked(keys, width)
        if parts is not None:
            return list(_drawn_in_parts(parts, width))
    return list(_blocks(table, keys, width))


def _left_out(names: Row, width: int) -> list[Line]:
    if not names:
        return []
    said = f"(no room for: {', '.join(names)}; use a wider terminal, a pipe or --json to see all)"
    return [Line(line) for line in wrapped(said, width)]


class _Table:
    """Cells with what is known about their columns."""

    def __init__(self, headers: Row, rows: Sequence[Row]) -> None:
        self.headers, self.rows = list(headers), [list(row) for row in rows]
        self.columns = [[row[place] for row in self.rows] for place in range(len(self.headers))]
        self.right = figure_columns(self.rows, len(self.headers))
        self.wrappable = [any(" " in cell and not is_figure(cell) for cell in column) for column in self.columns]

    @property
    def has_sentences(self) -> bool:
        return any(
            can_wrap and max(map(cell_len, column)) > RUNNING_TEXT
            for can_wrap, column in zip(self.wrappable, self.columns, strict=True)
        )

    def widths_within(self, width: int) -> list[int] | None:
        """What every column gets; None where the table does not fit."""
        room = width - GAP * (len(self.headers) - 1)
        natural = [self._natural(place) for place in range(len(self.headers))]
        widths = [self._least(place) for place in range(len(self.headers))]
        if sum(widths) > room:
            return None
        spare = room - sum(widths)
        for place in sorted(range(len(widths)), key=lambda place: natural[place]):  # the short ones are whole first
            wanting = [other for other in range(len(widths)) if widths[other] < natural[other]]
            given = min(spare // max(1, len(wanting)), natural[place] - widths[place])
            widths[place] += given
            spare -= given
        return widths

    def _natural(self, place: int) -> int:
        return max(map(cell_len, (self.headers[place], *self.columns[place])))

    def _least(self, place: int) -> int:
        """Without breaking a word of the heading, and a cell only where it is running text, not too narrowly."""
        heading = max((cell_len(word) for word in self.headers[place].split()), default=0)
        if not self.wrappable[place]:
            return max(heading, *map(cell_len, self.columns[place])) if self.rows else heading
        words = max(cell_len(word) for cell in self.columns[place] for word in (cell.split() or [""]))
        longest = max(map(cell_len, self.columns[place]))
        return max(heading, words, min(COMFORTABLE, longest))

    def without(self, names: Row) -> _Table:
        return self._taken([place for place, header in enumerate(self.headers) if header not in names])

    def transposed(self) -> _Table:
        names, *others = self.columns
        return _Table(
            [self.headers[0], *names],
            [[header, *column] for header, column in zip(self.headers[1:], others, strict=True)],
        )

    def stacked(self, keys: int, width: int) -> list[_Table] | None:
        """The table in parts that fit, each with the key columns; None where a single column does not fit."""
        parts: list[list[int]] = []
        for place in range(keys, len(self.headers)):
            if parts and self._taken([*range(keys), *parts[-1], place]).widths_within(width) is not None:
                parts[-1].append(place)
            else:
                parts.append([place])
        found = [self._taken([*range(keys), *part]) for part in parts]
        return found if all(part.widths_within(width) is not None for part in found) else None

    def _taken(self, places: Sequence[int]) -> _Table:
        return _Table(
            [self.headers[place] for place in places], [[row[place] for place in places] for row in self.rows]
        )


def _drawn(table: _Table, widths: Sequence[int]) -> Iterator[Line]:
    for line in _row_lines(table.headers, widths, table.right, from_below=True):
        yield Line(line, heading=True)
    yield Line((" " * GAP).join(RULE * width for width in widths))
    for row in table.rows:
        yield from map(Line, _row_lines(row, widths, table.right))


def _drawn_in_parts(parts: Sequence[_Table], width: int) -> Iterator[Line]:
    for number, part in enumerate(parts):
        if number:
            yield Line("")
        widths = part.widths_within(width)
        assert widths is not None
        yield from _drawn(part, widths)


def _row_lines(row: Row, widths: Sequence[int], right: Sequence[bool], *, from_below: bool = False) -> Iterator[str]:
    cells = [[cell] if is_figure(cell) else wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, cells))
    filled = [
        [""] * (height - len(cell)) + cell if from_below else cell + [""] * (height - len(cell)) for cell in cells
    ]
    for line in zip(*filled, strict=True):
        aligned = (padded(cell, width, right=side) for cell, width, side in zip(line, widths, right, strict=True))
        yield (" " * GAP).join(aligned).rstrip()


def _blocks(table: _Table, keys: int, width: int) -> Iterator[Line]:
    """The name of the row, and below it every cell behind the name of its column."""
    labels = table.headers[keys:]
    behind = max(map(cell_len, labels), default=0) + GAP
    room = width - len(INDENT) - behind
    for number, row in enumerate(table.rows):
        if number:
            yield Line("")
        for line in wrapped(", ".join(cell for cell in row[:keys] if cell), width):
            yield Line(line, heading=True)
        for label, cell in zip(labels, row[keys:], strict=True):
            if not cell:
                continue
            if len(labels) == 1 or room < COMFORTABLE:
                said = cell if len(labels) == 1 else f"{label}: {cell}"
                yield from (Line(INDENT + line) for line in wrapped(said, width - len(INDENT)))
                continue
            first, *more = wrapped(cell, room)
            yield Line(f"{INDENT}{padded(label, behind, right=False)}{first}")
            yield from (Line(INDENT + " " * behind + line) for line in more)
