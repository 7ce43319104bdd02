"""`python -m benchmarks ...` in a clone is `caged bench ...`."""

import sys

from caged.cli.main import main

sys.argv = ["caged", "bench", *sys.argv[1:]]
main()
