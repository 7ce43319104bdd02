"""A drawing as a file of its own: SVG as it is, PNG and PDF through `vl-convert-python` (extra `report`).

That package carries its renderer and its fonts along, so nothing has to be installed on the system.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from caged.errors import ConfigError
from caged.files import check_file, write_bytes
from caged.page.svg import FONT_SIZE, lines_within, tag, words

KINDS = (".svg", ".png", ".pdf")
_CONVERTER = "vl_convert"
_MARGIN, _TITLE_ROOM, _TITLE_SIZE, _TITLE_LINE = 20, 56, 17, 22
_TITLE_LOOK = {"fill": "#1c2330", "font_size": _TITLE_SIZE, "font_weight": 600}
_PNG_SCALE = 2.0  # pixels per unit of the drawing: sharp on a screen and in a document
_VIEW_BOX = re.compile(r'viewBox="0 0 (\d+) (\d+)"')
_VARIABLE = re.compile(r"var\(--[a-z0-9-]+, ([^)]+)\)")


def check_figure(path: Path) -> None:
    """Whether a figure can be written there; worth asking before anything expensive."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise ConfigError(f"output file {path} ends in '{path.suffix}'; a figure ends in {', '.join(KINDS)}")
    if kind != ".svg" and importlib.util.find_spec(_CONVERTER) is None:
        raise ConfigError(
            f"{path}: PNG and PDF need vl-convert-python, which is not installed here; install the extra 'report' "
            "(pip install 'caged-rec[report]'), or write an .svg"
        )
    check_file("--out", path)


def standalone(drawing: str, title: str) -> str:
    """With its title on top, on white, in plain colours: outside of a page there are no variables to look up."""
    found = _VIEW_BOX.search(drawing)
    assert found is not None
    width, height = int(found[1]), int(found[2])
    lines = lines_within(title, width * FONT_SIZE / _TITLE_SIZE)
    top = _TITLE_ROOM + _TITLE_LINE * (len(lines) - 1)
    placed = drawing.replace("<svg ", f'<svg x="{_MARGIN}" y="{top}" width="{width}" height="{height}" ', 1)
    size = width + 2 * _MARGIN, height + top + _MARGIN
    whole = tag(
        "svg",
        tag("title", words(title)),
        tag("rect", width=size[0], height=size[1], fill="#fff"),
        *(
            tag("text", words(line), x=_MARGIN, y=34 + _TITLE_LINE * place, **_TITLE_LOOK)
            for place, line in enumerate(lines)
        ),
        placed,
        xmlns="http://www.w3.org/2000/svg",
        width=size[0],
        height=size[1],
        viewBox=f"0 0 {size[0]} {size[1]}",
        font_family="system-ui, sans-serif",
    )
    return _VARIABLE.sub(r"\1", whole) + "\n"


def write_figure(path: Path, svg: str) -> None:
    """What `standalone` made, in the format that the name of the file asks for."""
    kind = path.suffix.lower()
    if kind == ".svg":
        write_bytes(path, svg.encode())
        return
    import vl_convert

    written = vl_convert.svg_to_png(svg, scale=_PNG_SCALE) if kind == ".png" else vl_convert.svg_to_pdf(svg)
    write_bytes(path, written)
