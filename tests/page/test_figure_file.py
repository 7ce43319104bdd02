"""A drawing as a file: titled, without variables, in three formats; a missing converter is one sentence."""

from __future__ import annotations

import importlib.util
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from caged.errors import ConfigError
from caged.page.charts import Series, bar_chart, line_chart
from caged.page.figure_file import check_figure, standalone, write_figure

SVG = "{http://www.w3.org/2000/svg}"
DRAWING = bar_chart(["a", "b"], [Series("m", [0.1, 0.2], look=1)], title="bars", width=350, height=200)


def test_a_file_stands_alone() -> None:
    written = standalone(DRAWING, "Bars < & more")
    root = ET.fromstring(written)
    assert root.tag == f"{SVG}svg"
    assert (root.get("width"), root.get("height")) == ("390", "276")
    assert [text.text for text in root.findall(f"{SVG}text")] == ["Bars < & more"]
    assert "var(" not in written
    assert "#d55e00" in written
    ground = root.find(f"{SVG}rect")
    assert ground is not None
    assert ground.get("fill") == "#fff"


def test_a_long_title_takes_further_lines() -> None:
    root = ET.fromstring(standalone(DRAWING, "a title of many words " * 4))
    lines = [text.text or "" for text in root.findall(f"{SVG}text")]
    assert len(lines) > 1
    assert " ".join(lines).split() == ("a title of many words " * 4).split()
    assert root.get("height") == str(276 + 22 * (len(lines) - 1))


def test_marks_for_the_pointer_are_not_seen_in_a_file() -> None:
    smooth = line_chart([1, 2], [Series("m", [0.1, 0.2])], title="line", markers=False)
    quiet = [group for group in ET.fromstring(smooth).iter("g") if group.get("class") == "mark quiet"]
    assert len(quiet) == 2
    assert all(group.get("opacity") == "0" for group in quiet)


def test_png_and_pdf(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    svg = standalone(DRAWING, "Bars")
    for kind in ("svg", "png", "pdf"):
        check_figure(tmp_path / f"bars.{kind}")
        write_figure(tmp_path / f"bars.{kind}", svg)
    assert (tmp_path / "bars.svg").read_text(encoding="utf-8") == svg
    png = (tmp_path / "bars.png").read_bytes()
    assert struct.unpack(">II", png[16:24]) == (2 * 390, 2 * 276)
    assert (tmp_path / "bars.pdf").read_bytes().startswith(b"%PDF")


def test_another_ending_and_a_missing_converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"ends in '.gif'; a figure ends in .svg, .png, .pdf"):
        check_figure(tmp_path / "bars.gif")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_figure(tmp_path / "bars.svg")
    with pytest.raises(ConfigError, match=r"vl-convert-python.*caged-rec\[report\].*or write an .svg"):
        check_figure(tmp_path / "bars.pdf")
