"""What a run asks of the machine it is on."""

from __future__ import annotations

import platform

import pytest
import torch

from caged.runs.environment import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_tables_are_used_again():
    """20 tables of 8 MiB, one after the other, are 40,960 fresh pages where each goes back to the system."""
    import resource

    keep_freed_memory(torch.device("cpu"))
    torch.ones(2**21)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(2**21)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 5_000
