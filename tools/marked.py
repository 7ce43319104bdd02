"""Documents whose tables are generated: what stands between two markers is written anew, the rest is left alone.

<!-- KIND: ARGUMENT -->
...
<!-- end -->
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from caged.errors import CagedError
from caged.files import write_text

MARKED = re.compile(r"(?P<opening><!-- (?P<kind>\w+): (?P<argument>[^\n]+?) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)


def filled(text: str, kinds: Mapping[str, Callable[[str], str]]) -> str:
    """The document with every marked part of these kinds made anew from its argument."""

    def generated(part: re.Match[str]) -> str:
        if part["kind"] not in kinds:
            return part[0]
        return f"{part['opening']}{kinds[part['kind']](part['argument'])}\n{part['end']}"

    return MARKED.sub(generated, text)


def arguments_of(text: str, kind: str) -> list[str]:
    """The arguments of all marked parts of a kind, in order."""
    return [part["argument"] for part in MARKED.finditer(text) if part["kind"] == kind]


def short(value: float) -> str:
    """
    >>> short(0.12345), short(195.4686)
    ('0.1235', '195.5')
    """
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"


def rewrite(arguments: Sequence[str] | None, updated: Callable[[str, Path], str], description: str) -> None:
    """The command of such a document: DOCUMENT [--results FOLDER]."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("document", type=Path)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder that --record wrote to")
    chosen = parser.parse_args(arguments)
    if not chosen.document.is_file():
        parser.error(f"{chosen.document} does not exist; give a document with markers, such as docs/methods.md")
    try:
        write_text(chosen.document, updated(chosen.document.read_text(encoding="utf-8"), chosen.results))
    except CagedError as error:
        parser.error(str(error))
