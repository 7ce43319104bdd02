from __future__ import annotations

import numpy as np

from caged.data.families import Family

GENRE = Family("genre", ("Comedy", "Drama", "Noir"), np.array([[0, 1, 0, -1], [-1, -1, 1, -1]], dtype=np.int8))


def test_a_row_may_be_in_several_groups_or_in_none() -> None:
    assert [GENRE.member(group).tolist() for group in range(3)] == [
        [True, False, True, False],
        [False, True, True, False],
        [False, False, False, False],
    ]
    assert GENRE.sizes.tolist() == [2, 2, 0]
    assert (len(GENRE), GENRE.ungrouped) == (4, 1)


def test_other_rows_keep_their_groups_and_new_ones_have_none() -> None:
    moved = GENRE.at(np.array([-1, 2, 2, 0]))
    assert moved.labels.tolist() == [[-1, 0, 0, 0], [-1, 1, 1, -1]]
    assert moved.sizes.tolist() == [3, 2, 0]
    assert GENRE.at(np.array([], dtype=np.int64)).ungrouped == 0
