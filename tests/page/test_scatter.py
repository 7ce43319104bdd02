"""Names of crowded points."""

from __future__ import annotations

import re
from itertools import combinations

from caged.page.scatter import Point, scatter
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
