"""Which programs made a result."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

import numpy as np
import pyarrow as pa

from caged._version import __version__


def versions() -> dict[str, str]:
    return {
        "caged": __version__,
        "python": platform.python_version(),
        "torch": _torch_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }


def _torch_version() -> str:
    """As torch says where it is imported; audits and comparisons do not import it only for this."""
    torch = sys.modules.get("torch")
    return str(torch.__version__) if torch else metadata.version("torch")
