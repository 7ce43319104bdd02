"""Tables in LaTeX, whatever their cells begin with."""

from __future__ import annotations

from caged.page.text_table import latex_table


def test_the_first_cell_of_a_row_is_no_argument_of_the_line_before() -> None:
    rows = [["[ours] CAGED", "0.5"], ["*new", "-0.25"], ["plain", "[0.1, 0.2]"]]
    lines = latex_table("With --keep 99%", ["*method", "recall"], rows, label="tab:t").splitlines()
    assert lines[lines.index(r"\toprule") + 1] == r"{}*method & recall \\"
    assert lines[lines.index(r"\midrule") + 1 : -3] == [
        r"{}[ours] CAGED & 0.5 \\",
        r"{}*new & $-$0.25 \\",
        r"plain & [0.1, 0.2] \\",
    ]


def test_two_hyphens_stay_two() -> None:
    text = latex_table("With --keep 99%", ["option"], [["--keep"], ["a---b"]], label="tab:t")
    assert r"\caption{With -{}-keep 99\%}" in text
    assert r"-{}-keep \\" in text
    assert r"a-{}-{}-b \\" in text
