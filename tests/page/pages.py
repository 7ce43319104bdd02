"""What every page has to fulfil."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise


class Walker(HTMLParser):
    """Collects the tags of a page, and fails where they are not nested properly."""

    VOID = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_page(page: str) -> Walker:
    """What every page has to fulfil."""
    walker = Walker(page)
    names = [name for name, _ in walker.tags]
    assert not {"script", "link", "img", "iframe"} & set(names)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", page)
    assert walker.of("html") == [{"lang": "en"}]
    assert any(attributes.get("name") == "viewport" for attributes in walker.of("meta"))
    for attributes in walker.of("svg"):
        assert attributes["role"] == "img"
        assert attributes["aria-label"]
    identifiers = [attributes["id"] for _, attributes in walker.tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    headings = [int(name[1]) for name in names if re.fullmatch(r"h[1-6]", name)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(headings))
    folded = [attributes for attributes in walker.of("div") if attributes.get("class") == "fold"]
    assert len(walker.of("figure")) + len(folded) == len(walker.of("details"))
    assert len(walker.of("table")) == len(walker.of("caption"))
    return walker
