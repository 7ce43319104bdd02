"""A stranger finds the test of a file by its path: tests/a/test_b.py tests src/caged/a/b.py."""

from __future__ import annotations

from pathlib import Path

import caged

TESTS = Path(__file__).parent
SOURCES = Path(caged.__file__).parent
CLONE = TESTS.parent
# What no single file keeps: rules about the whole tree, and the program from end to end.
ABOUT_THE_WHOLE = {"test_layers.py", "test_packaging.py", "test_structure.py"}
WHOLE_PROGRAM = "whole"


def subject_of(test: Path) -> Path | None:
    """The module or package that a test is about; `test_b_more.py` is about b too, where one file would be too long."""
    folder, name = test.relative_to(TESTS).parent, test.stem.removeprefix("test_")
    roots = (SOURCES, CLONE) if folder.parts[:1] in (("benchmarks",), ("tools",)) else (SOURCES,)
    words = name.split("_")
    names = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    places = (root / folder / candidate for candidate in names for root in roots)
    return next((place for place in places if place.with_suffix(".py").is_file() or place.is_dir()), None)


TEST_FILES = sorted(
    path
    for path in TESTS.rglob("test_*.py")
    if str(path.relative_to(TESTS)) not in ABOUT_THE_WHOLE and path.relative_to(TESTS).parts[0] != WHOLE_PROGRAM
)


def test_a_test_lies_where_the_file_does_that_it_tests() -> None:
    assert len(TEST_FILES) > 100
    assert [str(test.relative_to(TESTS)) for test in TEST_FILES if subject_of(test) is None] == []
