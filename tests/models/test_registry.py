"""The table of methods: a line is enough, and reading it imports nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import caged
from caged.errors import ConfigError
from caged.models import METHODS, Explainable, LearnsWeights, Method, StartsFromTables, registered
from caged.training import TrainConfig


@pytest.mark.parametrize("name", METHODS)
def test_a_line_leads_to_the_classes(name: str) -> None:
    known = registered(name)
    assert issubclass(known.method, Method)
    assert known.method.__name__ == known.public
    assert known.config.__module__ == known.method.__module__
    assert known.method(known.config()).config == known.config()


def test_names_looks_and_sentences_for_pages() -> None:
    assert len({known.look for known in METHODS.values()}) == len(METHODS)
    assert len({known.display for known in METHODS.values()}) == len(METHODS)
    for known in METHODS.values():
        assert known.display
        assert re.fullmatch(r"[A-Z][^.]*\.", known.plain), known.name


def test_an_unknown_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown method 'lightgnc'.*did you mean 'lightgcn'"):
        registered("lightgnc")


def test_names_and_titles_need_no_torch() -> None:
    script = (
        "import json, sys\n"
        "from caged.models import METHODS\n"
        "print(json.dumps([[known.name, known.title, known.public] for known in METHODS.values()]))\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    listed, loaded = (json.loads(line) for line in done.stdout.splitlines())
    assert listed == [[known.name, known.title, known.public] for known in METHODS.values()]
    assert not {"torch", "numpy", "caged.models.contract", "caged.models.lightgcn"} & set(loaded)


def test_names_that_the_package_does_not_have() -> None:
    with pytest.raises(AttributeError, match=r"module 'caged\.models' has no attribute 'nothing'"):
        caged.models.nothing  # noqa: B018
    assert all(hasattr(caged.models, name) for name in caged.models.__all__)


def test_what_methods_offer_beside_the_contract() -> None:
    def offering(protocol: type) -> set[str]:
        return {name for name, known in METHODS.items() if issubclass(known.method, protocol)}

    assert offering(Explainable) == set(METHODS) - {"mostpop", "advdrop", "itemknn", "ease"}
    assert offering(StartsFromTables) == {"galore"}
    assert offering(LearnsWeights) == {"caged"}


# A short list of settings that are worth a try, the size of EASE, and the symbols and ablations of one paper.
ABOUT_PARTICULAR_METHODS = {
    "products/best/plan.py",
    "products/best/shortlist.py",
    "products/reproduction/printed.py",
    "products/reproduction/titles.py",
}


def test_options_are_named_in_the_files_of_their_methods_alone() -> None:
    shared = {"embedding_size", "layers", "l2"}  # words of the glossary: every graph method has them
    shared |= {"loss"}  # `method.loss` is also what the contract calls the function
    own = {field.name for known in METHODS.values() for field in fields(known.config)} - shared
    of_training = {field.name for field in fields(TrainConfig)}
    named = re.compile(rf"\bmethod\.({'|'.join(own)})\b|\bconfig\.({'|'.join(own - of_training)})\b")
    root = Path(caged.__file__).parent
    outside = [path for path in root.rglob("*.py") if root / "models" not in path.parents]
    assert len(outside) > 50
    naming = {str(path.relative_to(root)) for path in outside if named.search(path.read_text(encoding="utf-8"))}
    assert naming == ABOUT_PARTICULAR_METHODS
