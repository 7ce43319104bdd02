"""What a command passes on its way, and that nothing is done twice there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.walk import ROOT, Walk, updated, walked

# A function that is watched for and a file that is read, each twice; `early` runs only while it is imported.
PACKAGE = {
    "__init__.py": "",
    "early.py": "def option():\n    return 1\n\nVALUE = option()\n",
    "work.py": "def measure(given):\n    return len(given)\n\ndef read(path):\n    return open(path).read()\n",
    "__main__.py": """
from caged import early
from caged.work import measure, read

def main():
    lists, others = [1], [1]
    measure(lists), measure(others), measure(lists)
    read("log.csv"), read("./log.csv")
""",
}


def test_the_tracer_sees_what_was_done_twice(tmp_path: Path) -> None:
    (tmp_path / "src" / "caged").mkdir(parents=True)
    for name, content in PACKAGE.items():
        (tmp_path / "src" / "caged" / name).write_text(content)
    (tmp_path / "log.csv").write_text("a,b")
    command = [sys.executable, str(ROOT / "tools" / "tracer.py"), str(tmp_path), "train"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    found = json.loads((tmp_path / "trace.json").read_text())
    assert found["passed"] == ["__main__.py", "work.py"]
    assert found["reads"]["log.csv"] == 2
    assert found["again"] == {"measure": 1}


def test_the_table_goes_between_the_markers() -> None:
    walks = [Walk("train", ["a.py", "b.py"], {"log.csv": 2, "run.json": 1}, {"measure": 3})]
    text = updated("before\n<!-- walk -->\nold\n<!-- end of walk -->\nafter\n", walks)
    assert "| `caged train` | 2 | `log.csv` (2) | `measure` (3) |\n<!-- end of walk -->\nafter\n" in text
    assert "old" not in text


@pytest.mark.slow
def test_nothing_is_done_twice() -> None:
    for walk in walked(ROOT / "src"):
        assert len(walk.passed) > 10
        assert walk.reads
        assert not walk.read_twice
        assert not walk.again
