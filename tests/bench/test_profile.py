"""`python -m caged.bench.profile`: what a step is made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caged.bench import profile


def test_parts_of_a_step_add_up_and_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "profile.json"
    arguments = ["lightgcn", "reg", "--shape", "tiny", "--device", "cpu", "--width", "8", "--layers", "2", "--json"]
    profile.main([*arguments, str(out)])
    record = json.loads(out.read_text())
    assert record["command"].endswith("--json profile.json")
    assert [result["method"] for result in record["results"]] == ["lightgcn", "reg"]
    for result in record["results"]:
        seconds = [part["seconds"] for part in result["parts"]]
        assert seconds == sorted(seconds, reverse=True)
        assert result["kernels_s"] == pytest.approx(sum(seconds))
        assert result["step_s"] > 0
        assert any(part["name"] == "aten::embedding_bag" or "index" in part["name"] for part in result["parts"])
    text = capsys.readouterr().out
    assert "lightgcn on tiny: " in text
    assert " others\n" in text
