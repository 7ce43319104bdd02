from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from caged.page.charts import Row, Series, bar_chart, line_chart, row_chart
from caged.page.numbers import percent
from caged.page.svg import REFERENCE, text_width

NASTY = 'A < B & "C"'
TWO = [Series(NASTY, [0.1, 0.2, 0.3]), Series("other", [0.3, 0.0, 0.1], look=REFERENCE)]
BETWEEN = Series("m", [0.2, 0.3, 0.1], lower=[0.1, 0.2, 0.05], upper=[0.3, 0.4, 0.2])

CHARTS: dict[str, Callable[[int], str]] = {
    "line": lambda width: line_chart([1, 2, 3], TWO, title=NASTY, description="falls", width=width),
    "bar": lambda width: bar_chart(["a", "b", NASTY], TWO, title=NASTY, description="falls", width=width),
    "row": lambda width: row_chart([Row(NASTY, 0.2), Row("b", -0.1)], title=NASTY, description="falls", width=width),
}
MARKS = {"line": 6, "bar": 6, "row": 2}


def parsed(drawing: str) -> Element:
    return ElementTree.fromstring(drawing)


def marks(drawing: str) -> list[Element]:
    return [group for group in parsed(drawing).iter("g") if group.get("class") == "mark"]


def spoken(drawing: str) -> list[str]:
    return [title.text or "" for mark in marks(drawing) for title in mark.iter("title")]


def written(drawing: str) -> list[str]:
    return [text.text or "" for text in parsed(drawing).iter("text")]


@pytest.mark.parametrize("width", [350, 720])
@pytest.mark.parametrize("name", CHARTS)
def test_a_drawing_is_well_formed_named_and_complete(name: str, width: int) -> None:
    drawing = CHARTS[name](width)
    root = parsed(drawing)
    assert (root.get("role"), root.get("aria-label"), root.findtext("desc")) == ("img", NASTY, "falls")
    assert root.get("viewBox", "").split()[2] == str(width)
    assert len(marks(drawing)) == len(spoken(drawing)) == MARKS[name]
    assert "http" not in drawing


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_is_drawn_outside(name: str) -> None:
    root = parsed(CHARTS[name](350))
    _, _, width, height = map(float, root.get("viewBox", "").split())
    for mark in root.iter("rect"):
        x, y, wide, high = (float(mark.get(key, "nan")) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width + 0.1
        assert 0 <= y <= y + high <= height + 0.1


def test_every_mark_says_its_value() -> None:
    drawing = line_chart([5, 10], [Series("shop", [0.25, 0.5])], title="t", x_names=["early", "late"], y_format=percent)
    assert spoken(drawing) == ["early, shop: 25%", "late, shop: 50%"]
    drawing = bar_chart(["1"], [Series("m", [0.2], [0.1], [0.3])], title="t", category_names=["tenth 1"])
    assert spoken(drawing) == ["tenth 1, m: 0.2 (0.1 to 0.3)"]
    assert spoken(row_chart([Row("m", -0.1, -0.2, 0.0)], title="t")) == ["m: -0.1 (-0.2 to 0)"]


def test_bars_are_as_high_as_their_values() -> None:
    drawing = bar_chart(["a", "b", "c"], [Series("m", [0.1, 0.2, 0.4], look=0)], title="t")
    heights = [float(mark.findall("rect")[1].get("height", "nan")) for mark in marks(drawing)]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert heights[2] == pytest.approx(4 * heights[0], abs=0.2)


def test_lines_rise_with_their_values() -> None:
    circles = [mark.find("circle") for mark in marks(line_chart([1, 2], [Series("m", [0.1, 0.3])], title="t"))]
    assert all(circle is not None for circle in circles)
    first, second = (float(circle.get("cy", "nan")) for circle in circles if circle is not None)
    assert second < first  # upwards is smaller in SVG


def test_rows_lie_on_their_side_of_zero() -> None:
    drawing = row_chart([Row("loss", -0.2, look=0), Row("gain", 0.2, look=0)], title="t")
    loss, gain = (mark.find("rect") for mark in marks(drawing))
    assert loss is not None
    assert gain is not None
    end_of_loss = float(loss.get("x", "nan")) + float(loss.get("width", "nan"))
    assert end_of_loss == pytest.approx(float(gain.get("x", "nan")), abs=0.2)


def test_undefined_values_are_left_out() -> None:
    holes = [Series("m", [0.1, math.nan, 0.3, 0.2]), Series("none", [math.nan] * 4)]
    for drawing in (line_chart([1, 2, 3, 4], holes, title="t"), bar_chart(["a", "b", "c", "d"], holes, title="t")):
        assert len(marks(drawing)) == 3
        assert "nan" not in drawing
    assert line_chart([1, 2, 3, 4], holes, title="t").count("M") == 2  # the line is interrupted
    drawing = row_chart([Row("m", math.nan)], title="t")
    assert not marks(drawing)
    assert "-" in written(drawing)


def test_intervals_are_drawn() -> None:
    assert len(list(parsed(line_chart([1, 2, 3], [BETWEEN], title="t")).iter("polygon"))) == 1
    assert (
        len([mark for mark in marks(bar_chart(["a", "b", "c"], [BETWEEN], title="t")) if mark.find("path") is not None])
        == 3
    )
    assert marks(row_chart([Row("m", 0.2, 0.1, 0.3)], title="t"))[0].find("path") is not None


def test_names_stand_beside_lines_where_there_is_room_and_in_a_legend_elsewhere() -> None:
    apart = [Series("high", [0.1, 0.9]), Series("low", [0.1, 0.2])]
    together = [Series("high", [0.1, 0.9]), Series("low", [0.2, 0.9])]

    def place(drawing: str, name: str) -> float:
        return next(float(text.get("x", "nan")) for text in parsed(drawing).iter("text") if text.text == name)

    assert place(line_chart([1, 2], apart, title="t", width=720), "high") > 600
    assert place(line_chart([1, 2], apart, title="t", width=350), "high") < 100
    assert place(line_chart([1, 2], together, title="t", width=720), "high") < 100


def test_series_differ_by_more_than_colour() -> None:
    many = [Series(f"s{index}", [0.1 * index, 0.2]) for index in range(4)]
    lines = parsed(line_chart([1, 2], many, title="t", width=350))
    dashes = {
        path.get("style", "").partition("stroke-dasharray:")[2]
        for path in lines.iter("path")
        if "fill:none" in path.get("style", "")
    }
    assert len(dashes) == 4
    bars = parsed(bar_chart(["a", "b"], many, title="t"))
    shapes = [pattern.find("path") for pattern in bars.iter("pattern")]
    assert len({shape.get("d") for shape in shapes if shape is not None}) == 3  # the first is plain
    used = {rect.get("fill", "") for rect in bars.iter("rect")}
    assert {f"url(#{pattern.get('id')})" for pattern in bars.iter("pattern")} <= used


def test_a_look_is_kept_across_charts() -> None:
    drawing = bar_chart(["a"], [Series("m", [0.1], look=3)], title="t")
    assert "--series-3" in drawing
    assert "--series-0" not in drawing


def test_long_names_are_cut_but_said_in_full() -> None:
    name = "an item with an extraordinarily long title that nobody could ever fit"
    drawing = row_chart([Row(name, 0.2)], title="t", width=350)
    assert name not in written(drawing)
    assert any(text.endswith("...") for text in written(drawing))
    assert spoken(drawing) == [f"{name}: 0.2"]


def words_below(drawing: str) -> dict[str, float]:
    """What is written below the horizontal axis, and where its middle is."""
    texts = [text for text in parsed(drawing).iter("text") if text.get("text-anchor") == "middle"]
    return {text.text or "": float(text.get("x", "nan")) for text in texts}


def test_words_of_places_that_lie_together_do_not_touch() -> None:
    x = [1e-6, 1e-5, 1e-3, 1e-2, 1e-1]
    shown = words_below(line_chart(x, [Series("m", [0.1] * 5)], title="t", x_format=lambda place: f"{place:g}"))
    assert list(shown) == ["1e-06", "0.01", "0.1"]
    for (left, start), (right, end) in pairwise(shown.items()):
        assert start + text_width(left) / 2 < end - text_width(right) / 2


def test_a_logarithmic_axis_spreads_magnitudes_and_says_the_values() -> None:
    x = [1e-6, 1e-5, 1e-3, 1e-2, 1e-1]
    drawing = line_chart(x, [Series("m", [0.1] * 5)], title="t", x_format=lambda place: f"{place:g}", logarithmic=True)
    shown = words_below(drawing)
    assert list(shown) == ["1e-06", "1e-05", "0.001", "0.01", "0.1"]
    first, second, third, fourth, fifth = shown.values()
    assert third - second == pytest.approx(2 * (second - first), abs=0.3)
    assert fifth - fourth == pytest.approx(second - first, abs=0.3)
    assert spoken(drawing)[0] == "1e-06, m: 0.1"
    ticked = line_chart(x, [Series("m", [0.1] * 5)], title="t", x_ticks=[1e-8, 1e-1], logarithmic=True)
    assert "nan" not in ticked
    assert len(words_below(ticked)) == 2


def test_crowded_places_are_thinned_out() -> None:
    x = list(range(1000, 1040))
    drawing = line_chart(x, [Series("m", [0.1] * len(x))], title="t", width=350)
    assert len(marks(drawing)) == 40
    assert 3 <= len([text for text in written(drawing) if text.startswith("1,0")]) < 10
