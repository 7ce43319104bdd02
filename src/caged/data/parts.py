"""The names of the parts of a split, in their order."""

from __future__ import annotations

NOT_LIKED = "test_negative"  # what was shown at random and not liked; `test` then holds what was
PARTS = ("train", "valid", "test", NOT_LIKED)
