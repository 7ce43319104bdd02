"""`caged bench`: how fast the engine is here, against a plain implementation and against what the machine can do.

The plain implementation is `benchmarks/reference.py`. It stays in the repository, outside of the package: it is what
the engine is judged by, so it should not travel, change or be tuned together with it. `caged bench` therefore needs a
clone and says so elsewhere; `python -m benchmarks` is the same program.
"""

from benchmarks.cases import cases
from benchmarks.profile import profile_rows
from benchmarks.run import Request, record, run

__all__ = ["Request", "cases", "profile_rows", "record", "run"]
