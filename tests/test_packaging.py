"""What ships: the packages that are asked for, the wheel and what it can do alone, and how to cite it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import caged

SOURCES = Path(caged.__file__).parent
CLONE = SOURCES.parent.parent
# Where it is not the name of the package.
IMPORT_NAMES = {"vl-convert-python": "vl_convert", "pyyaml": "yaml", "faiss-cpu": "faiss"}
COMMANDS = {"ruff", "mypy", "pre-commit", "pytest-xdist", "hatchling"}  # run, not imported

pytestmark = pytest.mark.skipif(not (CLONE / "pyproject.toml").exists(), reason="needs a clone")


@cache
def project() -> dict[str, object]:
    content: dict[str, object] = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]
    return content


def packages(requirements: list[str]) -> set[str]:
    """Their names, without versions and without the package's own extras."""
    names = {re.split(r"[\[<>=~! ;]", line)[0].lower().replace("_", "-") for line in requirements}
    return names - {project()["name"]}


EXTRAS = {extra: packages(listed) for extra, listed in project()["optional-dependencies"].items()}  # type: ignore[attr-defined]


@cache
def mentioned_in(*folders: Path) -> set[str]:
    """Roots of the imports, and texts: an optional package is imported by its name as text."""
    found = set()
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def unused(names: set[str], *folders: Path) -> set[str]:
    return {name for name in names if IMPORT_NAMES.get(name, name) not in mentioned_in(*folders)}


def test_what_is_asked_for_is_imported() -> None:
    assert not unused(packages(project()["dependencies"]), SOURCES)  # type: ignore[arg-type]


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_lists_only_what_is_imported(extra: str) -> None:
    if extra == "dev":
        folders = [CLONE / name for name in ("tests", "benchmarks", "tools")]
        assert not unused(EXTRAS[extra] - COMMANDS, *folders)
    else:
        assert not unused(EXTRAS[extra], SOURCES)


def test_everything_that_is_asked_for_has_a_version_that_is_known_to_work() -> None:
    pinned = packages((CLONE / "constraints.txt").read_text().splitlines()[1:])
    asked = packages(project()["dependencies"]).union(*EXTRAS.values())  # type: ignore[arg-type]
    assert asked <= pinned


def test_the_citation_names_this_version_and_the_paper() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((CLONE / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what the format demands
    assert citation["version"] == caged.__version__
    assert citation["license"] == project()["license"]
    (paper,) = citation["references"]
    assert {"type", "title", "authors"} <= set(paper)
    assert [author["family-names"] for author in paper["authors"]] == ["Que", "Zhang", "Zhao", "Ma"]


# ---------------------------------------------------------------- the wheel


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command that sees neither this clone nor what the tests have set."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CAGED_DATA")}
    return subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the wheel is built by hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    built = run(*pip, "--wheel-dir", folder, CLONE, cwd=folder)
    assert built.returncode == 0, built.stderr
    (file,) = folder.iterdir()
    return file


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=SOURCES, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    metadata = {name for name in names if re.match(r"caged_rec-[^/]*\.dist-info/", name)}
    assert names - metadata == {f"caged/{name}" for name in tracked.stdout.split() if (SOURCES / name).exists()}
    assert {"caged/py.typed", "caged/page/templates/page.html", "caged/runs/presets/gowalla.toml"} <= names
    assert {f"caged/products/serve/explorer/assets/{name}" for name in ("explorer.html", "explorer.js")} <= names


@pytest.fixture
def environment() -> Iterator[Path]:
    """An empty environment, gone afterwards: with torch it is large."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        yield Path(folder)


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel: Path, log_csv: Path, environment: Path, tmp_path: Path) -> None:
    commands = environment / "bin"
    install = (commands / "pip", "install", "--quiet", "--constraint", CLONE / "constraints.txt")
    for what in ("torch", wheel):  # torch first and pinned: an unpinned one may bring gigabytes along
        installed = run(*install, what, cwd=tmp_path)
        if installed.returncode and "No matching distribution" in installed.stderr:
            pytest.skip("no package index can be reached from here")
        assert installed.returncode == 0, installed.stderr

    def call(*arguments: str | Path) -> str:
        done = run(commands / "caged", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("data", "split", log_csv, "-o", "split")
    small = ("--set", "train.epochs=2", "--set", "method.embedding_size=4")
    call("train", "--data", "split", "--method", "lightgcn", "--out", "run", *small)
    call("recommend", "run", "--all-users", "-k", "5", "-o", "recs.parquet")
    parts = ("--train", "split/train.parquet", "--test", "split/test.parquet")
    audit = json.loads(call("audit", "recs.parquet", *parts, "-k", "5", "--json"))
    assert 0 < audit["metrics"]["recall@5"] <= 1
    where = run(commands / "python", "-c", "import caged; print(caged.__file__)", cwd=tmp_path).stdout
    assert where.startswith(str(environment))
