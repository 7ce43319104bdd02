"""A pseudo-random order of 0..n-1 that is computed place by place and never stored.

A number below n is a cell of a table with about sqrt(n) rows and columns. A Feistel network shuffles the table: in turn
the row moves by a hash of the column and the column by a hash of the row, each step of which can be undone. The table
has a few more cells than n; a number that lands on one of these is shuffled again until it does not, which keeps the
order a permutation (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
"""

from __future__ import annotations

import math

from torch import Tensor

from caged.seeding import derive

ROUNDS = 8  # pairs of them: rows, then columns
MASK = 2**32 - 1


class Permutation:
    """Which number stands at a place, for any seed."""

    def __init__(self, count: int, seed: int) -> None:
        self.count = count
        self._rows = math.isqrt(max(count, 1) - 1) + 1
        self._columns = -(-count // self._rows)
        self._keys = [
            (derive(seed, f"rows {turn}") & MASK, derive(seed, f"columns {turn}") & MASK) for turn in range(ROUNDS)
        ]

    def __call__(self, places: Tensor) -> Tensor:
        """(n,) int64 places below `count` -> the numbers there."""
        numbers = self._shuffled(places)
        outside = (numbers >= self.count).nonzero().squeeze(1)
        while len(outside):  # about one in sqrt(count), then one in sqrt(count) of these
            again = self._shuffled(numbers.index_select(0, outside))
            numbers.index_copy_(0, outside, again)
            outside = outside[again >= self.count]
        return numbers

    def _shuffled(self, numbers: Tensor) -> Tensor:
        row = numbers.div(self._columns, rounding_mode="floor")
        column = numbers - row * self._columns
        for row_key, column_key in self._keys:
            row.add_(_hashed(column, row_key, self._rows)).remainder_(self._rows)
            column.add_(_hashed(row, column_key, self._columns)).remainder_(self._columns)
        return row.mul_(self._columns).add_(column)


def _hashed(values: Tensor, key: int, bound: int) -> Tensor:
    """Below `bound`, from 32 mixed bits. No product reaches 2^63, so every device computes the same."""
    mixed = values.add(key).bitwise_and_(MASK)
    mixed.bitwise_xor_(mixed >> 16).mul_(0x21F0AAAD).bitwise_and_(MASK)
    mixed.bitwise_xor_(mixed >> 15).mul_(0x735A2D97).bitwise_and_(MASK)
    mixed.bitwise_xor_(mixed >> 15)
    return mixed.mul_(bound).bitwise_right_shift_(32)
