"""What one layer costs, on a log small enough for a test."""

from __future__ import annotations

import re

from benchmarks import layers


def test_layers_of_both_kinds_of_weights_are_told(capsys):
    layers.main(["--users", "300", "--items", "100", "--interactions", "3k", "--k", "8", "--device", "cpu"])
    told = capsys.readouterr().out
    assert "interactions, built in" in told
    for name in ("factors", "per edge"):
        for what in (r"layer [\d.,]+ ms", r"layer, transposed [\d.,]+ ms", r"[\d.]+ bytes per interaction held"):
            assert re.search(f"^{name}: {what}", told, re.MULTILINE), what
