"""Experiments: specification, protocols, run folders, records, and the public estimator classes."""
