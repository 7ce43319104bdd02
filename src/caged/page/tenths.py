"""Bars by popularity of the trained items, cut into ten groups: the chart that several pages share."""

from __future__ import annotations

from collections.abc import Sequence

from caged.data.popularity import BUCKETS
from caged.page import charts
from caged.page.charts import Series
from caged.page.html import NARROW, Panel
from caged.page.numbers import percent

TENTHS = tuple(str(place + 1) for place in range(BUCKETS))


def tenths_panel(
    series: Sequence[Series],
    *,
    title: str,
    description: str,
    ordered_by: str = "popular",
    y_label: str = "",
    height: int = 360,
    narrow_height: int = 320,
) -> Panel:
    """Shares per tenth, the most popular first."""

    def draw(width: int) -> str:
        return charts.bar_chart(
            TENTHS,
            series,
            title=title,
            description=description,
            x_label=f"tenths of the trained items, 1 = most {ordered_by}",
            y_label=y_label,
            category_names=[f"tenth {tenth}" for tenth in TENTHS],
            y_format=percent,
            width=width,
            height=height if width > NARROW else narrow_height,
        )

    return Panel(draw)
