"""The types of the public names are those of the configurations, and a type checker sees them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import caged
from tools.stubs import CATALOGUE, COMMAND, STUB, catalogue, main, stub


def test_what_is_generated_is_up_to_date() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), f"run {COMMAND}"
    assert CATALOGUE.read_text(encoding="utf-8") == catalogue(), f"run {COMMAND}"


def test_the_command_writes_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STUB", "CATALOGUE"):
        monkeypatch.setattr(f"tools.stubs.{name}", tmp_path / name)
    main()
    assert (tmp_path / "STUB").read_bytes() == STUB.read_bytes()
    assert (tmp_path / "CATALOGUE").read_bytes() == CATALOGUE.read_bytes()


def test_the_stub_has_every_public_name() -> None:
    body = ast.parse(STUB.read_text(encoding="utf-8")).body
    imported = {alias.asname for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    defined = {node.name for node in body if isinstance(node, ast.ClassDef)}
    assert (imported | defined) - {None} == set(caged.__all__)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ("caged.LightGCN(embedding_size=64).fit(data).save('x')", None),
        ('caged.LightGCN(embedding_size="x")', 'Argument "embedding_size" to "LightGCN" has incompatible type "str"'),
        ("caged.LightGCN(embeding_size=64)", 'Unexpected keyword argument "embeding_size"'),
        ('caged.APDA(inner="product")', 'Argument "inner" to "APDA" has incompatible type'),
        ("caged.nothing", 'Module has no attribute "nothing"'),
    ],
)
def test_a_type_checker_sees_the_options(call: str, complaint: str | None, tmp_path: Path) -> None:
    from mypy import api

    script = tmp_path / "script.py"
    script.write_text(f'import caged\ndata = caged.Interactions.read("log.csv")\n{call}\n')
    cache = STUB.parents[2] / ".mypy_cache"
    printed, _, code = api.run(["--strict", "--follow-imports=silent", "--cache-dir", str(cache), str(script)])
    assert code == (0 if complaint is None else 1), printed
    assert complaint is None or complaint in printed
