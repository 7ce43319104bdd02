"""The names of the parts of a split, in their order."""

from __future__ import annotations

NOT_LIKED = "test_negative"  # what was shown at random and not liked; `test` then holds what was
NOT_LIKED_BEFORE = "valid_negative"  # the same of the time before the test: beside `valid`, to choose by
PARTS = ("train", "valid", "test", NOT_LIKED, NOT_LIKED_BEFORE)
