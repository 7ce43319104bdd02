"""Top-K lists, metrics as pure functions on lists, and `evaluate`.

Nothing is imported here, so that the parts that need only NumPy do not wait for torch.
"""
