"""Names of crowded points."""

from __future__ import annotations

import re
from itertools import combinations

from caged.page.scatter import Box, Point, _crosses, names_beside, scatter
from caged.page.svg import text_width


def drawn(points: dict[str, Point]) -> str:
    return scatter(points, [], title="t", description="d", x_label="x", y_label="y")


def names_in(drawing: str, names: dict[str, Point]) -> dict[str, tuple[float, float]]:
    found = re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)"[^>]*>([^<]*)</text>', drawing)
    return {name: (float(x), float(y)) for x, y, name in found if name in names}


def test_crowded_names_do_not_touch_and_lines_lead_to_those_further_away() -> None:
    points = {f"a method called {number}": Point(0.5 + number / 10000, 0.5) for number in range(12)}
    points |= {"low": Point(0.0, 0.0), "high": Point(1.0, 1.0)}
    drawing = drawn(points)
    places = names_in(drawing, points)
    assert places.keys() == points.keys()
    for (one, (x, y)), (other, (other_x, other_y)) in combinations(places.items(), 2):
        apart = abs(y - other_y) >= 15.9 or x + text_width(one) <= other_x or other_x + text_width(other) <= x
        assert apart, (one, other)
    assert drawing.count("stroke-width:.75") > 5


def test_a_name_beside_its_point_needs_no_line() -> None:
    assert "stroke-width:.75" not in drawn({"low": Point(0.0, 0.0), "high": Point(1.0, 1.0)})


def test_lines_lie_below_all_names() -> None:
    points = {f"a method called {number}": Point(0.5 + number / 10000, 0.5) for number in range(12)}
    drawing = drawn({**points, "low": Point(0.0, 0.0), "high": Point(1.0, 1.0)})
    assert drawing.rindex("stroke-width:.75") < min(drawing.index(f">{name}</text>") for name in points)


def test_a_line_crosses_no_name_where_it_can_pass() -> None:
    """The name of the second point stands above that of the first, which is in its way."""
    assert _crosses((0, 0), (0, 30), [Box(-5, 10, 5, 20)])
    assert not _crosses((0, 0), (30, 0), [Box(-5, 10, 5, 20)])
    places = {"first": (100.0, 100.0), "second": (100.0, 101.0)}
    drawn_names = "".join(names_beside(places, [], Box(0, 0, 300, 300)))
    for x1, y1, x2, y2 in re.findall(r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', drawn_names):
        others = [
            Box(left, bottom - 12, left + text_width(name), bottom)
            for name, (left, bottom) in names_in(drawn_names, dict.fromkeys(places, Point(0, 0))).items()
        ]
        start, end = (float(x1), float(y1)), (float(x2), float(y2))
        assert sum(_crosses(start, end, [box]) for box in others) <= 1  # the name that it leads to
