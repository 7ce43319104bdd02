"""A table on a terminal: which layout is taken, and that nothing is ever broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from caged.page.fitted_table import fitted_lines, wrapped

HEADERS = ["method", "metric", "difference", "95% interval", "users"]
ROWS = [
    ["itemknn", "recall@20/niche", "+0.0123", "-0.0100 to +0.0300", "1,234"],
    ["ease", "tail_share@20", "-0.5000", "-", "9"],
]


def texts(*arguments: object, **options: object) -> list[str]:
    return [line.text for line in fitted_lines(*arguments, **options)]  # type: ignore[arg-type]


def test_a_table_that_fits_stands_as_it_is() -> None:
    assert texts(HEADERS, ROWS, 80) == [
        "method   metric           difference        95% interval  users",
        "-------  ---------------  ----------  ------------------  -----",
        "itemknn  recall@20/niche     +0.0123  -0.0100 to +0.0300  1,234",
        "ease     tail_share@20       -0.5000                   -      9",
    ]


def test_spare_columns_go_first_and_are_named() -> None:
    lines = texts(HEADERS, ROWS, 60, keys=2, spare=("users", "metric"))
    assert lines[0] == "method   metric           difference        95% interval"
    assert lines[-2:] == ["(no room for: users; use a wider terminal, a pipe or --json", "to see all)"]


def test_few_rows_of_numbers_are_turned() -> None:
    assert texts(["method", "recall@20", "ndcg@20"], [["a", "0.1", "0.2"], ["b", "0.3", "0.4"]], 20) == [
        "method       a    b",
        "---------  ---  ---",
        "recall@20  0.1  0.3",
        "ndcg@20    0.2  0.4",
    ]


def test_columns_are_stacked_below_the_columns_that_name_a_row() -> None:
    assert texts(HEADERS, ROWS, 52, keys=2) == [
        "method   metric           difference",
        "-------  ---------------  ----------",
        "itemknn  recall@20/niche     +0.0123",
        "ease     tail_share@20       -0.5000",
        "",
        "method   metric                 95% interval  users",
        "-------  ---------------  ------------------  -----",
        "itemknn  recall@20/niche  -0.0100 to +0.0300  1,234",
        "ease     tail_share@20                     -      9",
    ]


def test_sentences_are_wrapped_and_then_put_into_blocks() -> None:
    rows = [["lam", "1.2", "how strongly the edge weights follow the likelihood of an interaction"]]
    headers = ["option", "default", "meaning"]
    wide = texts(headers, rows, 50)
    assert wide[2:] == [
        "lam         1.2  how strongly the edge weights",
        "                 follow the likelihood of an",
        "                 interaction",
    ]
    assert texts(headers, rows, 32) == [
        "lam",
        "  default  1.2",
        "  meaning  how strongly the edge",
        "           weights follow the",
        "           likelihood of an",
        "           interaction",
    ]


def test_wide_characters_count_twice() -> None:
    lines = texts(["title", "n"], [["東京物語", "1"], ["Ran", "22"]], 20)
    assert lines[2:] == ["東京物語   1", "Ran       22"]


def test_a_word_wider_than_the_terminal_stays_whole() -> None:
    address = "https://example.org/" + "x" * 40
    lines = texts(["name", "home"], [["set", address]], 30)
    assert any(address in line for line in lines)


def test_a_table_without_rows_is_its_heading() -> None:
    assert texts(["user_id", "rank"], [], 40) == ["user_id  rank", "-------  ----"]


CELL = st.one_of(
    st.integers(-(10**6), 10**6).map("{:,}".format),
    st.floats(-100, 100).map("{:+.4f}".format),
    st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=12).map(" ".join),
)


@given(st.data(), st.integers(1, 7), st.integers(0, 8), st.integers(20, 120))
def test_nothing_is_broken_or_lost(data: st.DataObject, columns: int, height: int, width: int) -> None:
    headers = [data.draw(st.text("abcdefgh", min_size=1, max_size=12)) for _ in range(columns)]
    rows = [[data.draw(CELL) for _ in range(columns)] for _ in range(height)]
    lines = texts(headers, rows, width)
    shown = " ".join(lines).replace(":", " ").replace(",  ", " ").split()
    for cell in (cell for row in rows for cell in row):
        for word in cell.split():
            assert word in shown or f"{word}," in shown
    for line in lines:
        assert cell_len(line) <= width or len(line.split()) <= 2  # one long word, perhaps behind its label


@pytest.mark.parametrize("width", [1, 5, 80])
def test_wrapping_keeps_every_word(width: int) -> None:
    text = "the most  popular fifth\tof the items"
    assert " ".join(wrapped(text, width)).split() == text.split()
