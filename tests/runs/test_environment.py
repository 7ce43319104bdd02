"""What a run asks of the machine it is on."""

from __future__ import annotations

import platform

import pytest
import torch

from caged.runs.environment import SIDE_BY_SIDE, hardware, keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_tables_are_used_again():
    """12 tables of 8 MiB at a time, as a step has them, are 24,576 fresh pages where they go back to the system."""
    import resource

    def fresh_pages() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        tables = [torch.ones(2**21) for _ in range(12)]
        del tables
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    keep_freed_memory(torch.device("cpu"))
    assert min(fresh_pages() for _ in range(5)) < 5_000  # the first ones let the heap grow to what a step needs


@pytest.mark.parametrize(("told", "said"), [("3", 3), ("1", None), ("many", None), (None, None)])
def test_hardware_says_how_many_runs_share_it(monkeypatch, told, said):
    if told is None:
        monkeypatch.delenv(SIDE_BY_SIDE, raising=False)
    else:
        monkeypatch.setenv(SIDE_BY_SIDE, told)
    assert hardware(torch.device("cpu")).get("side_by_side") == said
