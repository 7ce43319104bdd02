"""A dot per trial."""

from __future__ import annotations

import re

import pytest

from caged.page.cloud import Dot, cloud, far_dots

DOTS = [Dot(0.1, 0.3, 0, "a: 0.1 <b>"), Dot(0.2, 0.2, 1, "b", name="B"), Dot(0.15, 0.1, 0, "c")]


def drawn(width: int = 720, x_limit: tuple[float, str] | None = None) -> str:
    labels = {"x_label": "recall", "y_label": "niche"}
    legend = {"a long name of a method": 0, "another long name": 1, "and a third one": 2}
    return cloud(DOTS, DOTS[:2], legend, title="t", description="d", width=width, x_limit=x_limit, **labels)


def test_every_dot_says_what_it_is() -> None:
    picture = drawn()
    assert picture.count('class="mark"') == 3
    assert "<title>a: 0.1 &lt;b&gt;</title>" in picture
    assert picture.count('r="7"') == 1  # the one with a name has a ring
    assert ">B</text>" in picture


@pytest.mark.parametrize("width", [350, 720])
def test_the_legend_takes_the_lines_that_it_needs(width: int) -> None:
    picture = drawn(width)
    ends = [float(x) for x in re.findall(r'<text x="([\d.]+)" y="\d+" text-anchor="start"', picture)]
    assert max(ends) < width
    lines = set(re.findall(r'y="(\d+)" text-anchor="start"[^>]*>(?:a long|another|and a)', picture))
    assert len(lines) == (2 if width == 350 else 1)


def test_a_limit_is_drawn_where_it_is() -> None:
    assert "at least 0.18" in drawn(x_limit=(0.18, "at least 0.18"))
    words = "at least 0.4, which nobody reaches"
    (anchor,) = re.findall(rf'text-anchor="(\w+)"[^>]*>{words}', drawn(x_limit=(0.4, words)))
    assert anchor == "end"  # the axis reaches it, and beyond there is no room


def test_a_name_hides_no_dot_where_it_can_stand_elsewhere() -> None:
    """To the right of the named dot there are others, to the left there are none."""
    dots = [Dot(0.2, 0.2, 0, "named", name="chosen"), *(Dot(0.2 + step / 100, 0.2, 0, "x") for step in range(1, 9))]
    dots.append(Dot(0.1, 0.1, 0, "far"))
    picture = cloud(dots, dots[:1], {"a": 0}, title="t", description="d", x_label="x", y_label="y")
    (left,) = re.findall(r'<text x="([\d.]+)"[^>]*>chosen<', picture)
    (ring,) = re.findall(r'cx="([\d.]+)" cy="[\d.]+" r="7"', picture)
    assert float(left) < float(ring)


def test_a_few_dots_far_to_the_left_do_not_crowd_the_others() -> None:
    near = [Dot(0.5 + step / 100, 0.2, 0, "near") for step in range(8)]
    far = Dot(0.01, 0.1, 0, "far")
    for dots, front, left in (([*near, far], [], [far]), ([*near, far], [far], []), (near, [], [])):
        assert far_dots(dots, front) == left
    assert far_dots([*near, Dot(0.01, 0.1, 0, "far", name="chosen")], []) == []
    picture = cloud([*near, far], near[-1:], {"a": 0}, title="t", description="d", x_label="x", y_label="y")
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)" cy="[\d.]+" r="9"', picture)]
    assert len(places) == 9
    assert min(places) >= 0
    assert sorted(places)[1] < 300  # of 720: the near ones have the width to themselves
