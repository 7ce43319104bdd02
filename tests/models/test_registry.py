"""The table of methods: a line is enough, and reading it imports nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import caged
from caged.errors import ConfigError
from caged.models import METHODS, Explainable, LearnsWeights, Method, StartsFromTables, registered


@pytest.mark.parametrize("name", METHODS)
def test_a_line_leads_to_the_classes(name: str) -> None:
    known = registered(name)
    assert issubclass(known.method, Method)
    assert known.method.__name__ == known.public
    assert known.config.__module__ == known.method.__module__
    assert known.method(known.config()).config == known.config()


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
