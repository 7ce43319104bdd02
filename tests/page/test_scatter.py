"""Names of crowded points."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from caged.page.scatter import Box, Point, _crosses, _placed, names_beside, scatter
from caged.page.svg import text_width


def drawn(points: dict[str, Point], front: Sequence[str] = ()) -> str:
    return scatter(points, front, title="t", description="d", x_label="x", y_label="y")


def names_in(drawing: str, names: dict[str, Point]) -> dict[str, tuple[float, float]]:
    found = re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)"[^>]*>([^<]*)</text>', drawing)
    return {name: (float(x), float(y)) for x, y, name in found if name in names}


def test_crowded_names_do_not_touch_and_lines_lead_to_those_further_away() -> None:
    points = {f"a method called {number}": Point(0.5 + number / 10000, 0.5) for number in range(12)}
    points |= {"low": Point(0.0, 0.0), "high": Point(1.0, 1.0)}
    drawing = drawn(points, ["low"])  # so the axis reaches it
    places = names_in(drawing, points)
    assert places.keys() == points.keys()
    for (one, (x, y)), (other, (other_x, other_y)) in combinations(places.items(), 2):
        apart = abs(y - other_y) >= 15.9 or x + text_width(one) <= other_x or other_x + text_width(other) <= x
        assert apart, (one, other)
    assert drawing.count("stroke-width:.75") > 5


def test_a_name_beside_its_point_needs_no_line() -> None:
    assert "stroke-width:.75" not in drawn({"low": Point(0.0, 0.0), "high": Point(1.0, 1.0)})


def test_a_point_far_to_the_left_does_not_crowd_the_others() -> None:
    """It stands at the edge with its value; on the front it would be where it is."""
    near = {f"near {step}": Point(0.5 + step / 100, 0.2) for step in range(8)}
    points = {**near, "far": Point(0.01, 0.1, x_interval=(0.005, 0.015))}
    drawing = drawn(points)
    assert ">← far 0.01</text>" in drawing
    assert "stroke-width:1.25" not in drawing  # its interval lies beyond the axis, too
    xs = [float(x) for x in re.findall(r'<circle cx="([\d.]+)" cy="[\d.]+" r="11"', drawing)]
    assert len(xs) == 9
    assert min(xs) == xs[-1]
    assert sorted(xs)[1] < 300  # of 720: the near ones have the width to themselves
    assert ">far</text>" in drawn(points, ["far"])
    assert ">far</text>" in drawn(dict(list(points.items())[-4:]))


def test_an_interval_ends_where_the_axis_begins() -> None:
    """A point may be far from the others and yet on their axis, which its interval need not be."""
    points = {f"near {step}": Point(0.5 + step / 100, 0.2) for step in range(8)}
    points["lower"] = Point(0.42, 0.3, x_interval=(-2.0, 0.5))
    drawing = drawn({**points, "low": Point(0.3, 0.4)}, ["low"])
    assert ">lower</text>" in drawing
    (start,) = re.findall(r'<line x1="([-\d.]+)"[^>]*stroke-width:1.25', drawing)
    assert 0 <= float(start) < 100


def boxes_in(drawing: str, words: str) -> list[Box]:
    """Where the lines of names are drawn that hold these words, as far as widths are known."""
    found = re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)" style="[^"]*paint-order[^>]*>([^<]*)</text>', drawing)
    placed = [(float(x), float(y), text) for x, y, text in found if words in text]
    return [Box(x, y - 12, x + text_width(text), y + 4) for x, y, text in placed]


def test_a_name_stands_beside_the_intervals_of_its_point_and_of_others() -> None:
    across, upward = Point(0.5, 0.5, x_interval=(0.3, 0.7)), Point(0.5, 0.5, y_interval=(0.2, 0.8))
    both = Point(0.5, 0.5, (0.3, 0.7), (0.2, 0.8))
    far = {"low": Point(0.0, 0.0), "high": Point(1.0, 1.0)}
    long = {"long": Point(0.2, 0.55, (0.1, 0.9))}  # passes where the name would else stand, above a point
    for points in ({"near": across}, {"near": upward}, {"near": both}, {"near": across, **long}):
        drawing = drawn({**far, **points})
        assert not any(name.touches(bar) for name in boxes_in(drawing, "near") for bar in bars_in(drawing))
        assert "stroke-width:.75" not in drawing


def bars_in(drawing: str) -> list[Box]:
    """The intervals."""
    found = re.findall(
        r'<line x1="([-\d.]+)" y1="([-\d.]+)" x2="([-\d.]+)" y2="([-\d.]+)"[^>]*stroke-width:1.25', drawing
    )
    return [Box(*map(float, one)) for one in found]


def test_a_name_that_cannot_but_cross_an_interval_does_not_hide_it() -> None:
    points = {f"a method called {number}": Point(0.5, 0.5, (0.1, 0.9), (0.0, 1.0)) for number in range(12)}
    drawing = drawn(points)
    last_name = max(drawing.index(f">{name}</text>") for name in points)
    assert last_name < drawing.index("stroke-width:1.25")


def test_long_names_are_broken_into_lines_that_neither_touch_nor_leave_the_drawing() -> None:
    long = "CAGED number {} with the likelihood of the published code, constant weights and momentum, for 100 epochs"
    points = {long.format(number): Point(0.1 + 0.1 * number, 0.1 * number) for number in range(5)}
    points["x" * 100] = Point(0.45, 0.1)
    drawing = drawn(points)
    lines = boxes_in(drawing, "")
    assert len(lines) > len(points)
    assert all(line.left >= 0 and line.right <= 720 for line in lines)
    assert not any(
        one.touches(Box(other.left, other.top + 1, other.right, other.bottom - 1))
        for one, other in combinations(lines, 2)
    )
    assert all(f"<title>{name}: " in drawing for name in points)  # in full under the pointer
    assert len(boxes_in(drawing, "CAGED number")) == 5


def test_a_name_in_one_line_leaves_room_for_others() -> None:
    plot, point = Box(0, 0, 400, 300), (10.0, 150.0)
    assert len(_placed("a name of a third of the width", point, 1.0, plot, [], []).lines) == 1
    assert len(_placed("a name of nearly all of the width, and yet it would fit", point, 1.0, plot, [], []).lines) == 2


def test_a_name_is_as_narrow_as_it_has_to_be_and_at_last_hides_least() -> None:
    plot, point, name = Box(0, 0, 300, 300), (10.0, 150.0), "one two three four five"
    column = Box(100, 0, 300, 300)  # taken: there is room for narrow lines only
    found = _placed(name, point, 1.0, plot, [column], [])
    assert (found.lines, found.away) == (["one two", "three four", "five"], 0)
    everywhere, upper = Box(0, 0, 300, 300), Box(0, 0, 300, 151)
    assert _placed(name, point, 1.0, plot, [everywhere, upper], []).box.top > 151


def test_a_name_of_a_point_on_another_one_may_stand_further_away() -> None:
    """The line to it begins at both points: it is not cut off by the other one."""
    places = {"first": (150.0, 150.0), "second": (150.0, 150.0)}
    around = [Box(100, 120, 200, 148), Box(100, 152, 200, 180)] * 3  # hides three things everywhere near
    (line,) = re.findall(
        r"<line .*?/>", "".join(names_beside({"second": (150.0, 150.0)}, [], Box(0, 0, 300, 300), around))
    )
    lines = re.findall(r"<line .*?/>", "".join(names_beside(places, [], Box(0, 0, 300, 300), around)))
    assert len(lines) == 2
    assert line == lines[0]


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
