"""`python -m benchmarks`: how fast the engine is here, against a plain implementation and what the machine can do.

The plain implementation is `reference.py`. It is what the engine is judged by, so it should not travel, change or be
tuned together with it: benchmarks need a clone and are no part of the package.
"""
