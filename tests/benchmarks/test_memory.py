"""Peak memory is that of the program, not of whoever started it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from benchmarks import memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="VmHWM is Linux's")
def test_a_small_program_started_by_a_large_one_is_small():
    ballast = np.ones(2**25)  # 256 MiB
    script = f"import runpy; print(runpy.run_path({memory.__file__!r})['peak_memory']())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2**27
    assert memory.peak_memory() > ballast.nbytes
