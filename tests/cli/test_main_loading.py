"""Ctrl-C while the program is still loading."""

from __future__ import annotations

import builtins

import pytest

from caged.__main__ import main


def test_it_ends_without_a_traceback(monkeypatch, capsys):
    load = builtins.__import__

    def interrupted(name, *rest):
        if name == "caged.cli.main":
            raise KeyboardInterrupt
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
