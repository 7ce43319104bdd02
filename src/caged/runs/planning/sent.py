"""What ranks that share the columns of a training send each other, in a ring: the formulas of docs/scale.md."""

from __future__ import annotations

FLOAT = 4
SOFTMAX = "softmax"


def summed(payload: float, ranks: int) -> float:
    """Bytes that a rank sends in a ring that sums `payload` bytes."""
    return 2 * (ranks - 1) / ranks * payload


def gathered(payload: float, ranks: int) -> float:
    """Bytes that a rank sends in a ring that gathers `payload` bytes of each."""
    return (ranks - 1) * payload


def sent_in_a_step(method: str, batch: int, width: int, ranks: int) -> float:
    """Bytes that a rank sends: with BPR two partial scores per triple, with the softmax its columns of two rows; and
    the partial L2 term."""
    if ranks == 1:
        return 0.0
    if method == SOFTMAX:
        return gathered(FLOAT * (2 * batch * -(-width // ranks) + 1), ranks)
    return summed(FLOAT * (2 * batch + 1), ranks)
