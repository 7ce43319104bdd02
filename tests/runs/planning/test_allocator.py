"""Memory is taken by the rules of torch's caching allocator."""

from __future__ import annotations

from caged.runs.planning.allocator import Allocator

MIB = 2**20


def test_sizes_of_segments() -> None:
    for size, taken in ((1, 2 * MIB), (MIB, 2 * MIB), (MIB + 1, 20 * MIB), (10 * MIB, 10 * MIB), (11 * MIB, 12 * MIB)):
        memory = Allocator()
        memory.take("a", size)
        assert memory.reserved == taken


def test_what_is_freed_is_used_again() -> None:
    memory = Allocator()
    memory.give(memory.take("a", 40 * MIB))
    memory.take("b", 30 * MIB)
    memory.take("c", 10 * MIB)
    assert memory.reserved == 40 * MIB
    memory.take("d", 10 * MIB)
    assert memory.reserved == 50 * MIB


def test_the_smallest_block_that_is_large_enough_is_taken() -> None:
    memory = Allocator()
    memory.give(*(memory.take("a", size * MIB) for size in (60, 20, 40)))
    memory.take("b", 20 * MIB)
    memory.take("c", 40 * MIB)
    memory.take("d", 60 * MIB)
    assert memory.reserved == 120 * MIB


def test_free_neighbours_become_one_block() -> None:
    memory = Allocator()
    memory.give(memory.take("a", 60 * MIB))
    parts = [memory.take("part", 20 * MIB) for _ in range(3)]
    memory.give(parts[0], parts[2])
    memory.take("too large for a part", 40 * MIB)
    assert memory.reserved == 100 * MIB
    memory.give(parts[1])
    memory.take("as large as all parts", 60 * MIB)
    assert memory.reserved == 100 * MIB


def test_a_rest_of_up_to_a_mebibyte_stays_with_its_tensor() -> None:
    memory = Allocator()
    memory.give(memory.take("a", 40 * MIB))
    memory.take("b", 39 * MIB)
    assert memory.most_in_tensors == 40 * MIB
    assert memory.tensors[0].bytes == 40 * MIB


def test_streams_share_nothing_and_an_emptied_cache_keeps_segments_with_tensors() -> None:
    memory = Allocator()
    memory.give(memory.take("a", 40 * MIB))
    with memory.on("aside"):
        first, second = memory.take("b", 30 * MIB), memory.take("c", 40 * MIB)
        memory.give(first)
        memory.take("d", 10 * MIB)
        memory.give(second)
    assert memory.reserved == 110 * MIB
    memory.empty_cache()
    assert memory.reserved == 30 * MIB


def test_the_fullest_moment_is_remembered() -> None:
    memory = Allocator()
    memory.phase = "early"
    one = memory.take("a", 40 * MIB)
    memory.phase = "late"
    two = memory.take("b", 20 * MIB)
    memory.give(one, two)
    memory.take("c", 20 * MIB)
    found = memory.fullest
    assert (found.phase, found.reserved, [one.name for one in found.tensors]) == ("late", 60 * MIB, ["a", "b"])
    assert [one.name for one in memory.tensors] == ["c"]
