"""Signatures of processes, and who is surely gone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from caged import processes
from caged.processes import BOOT, signature, signed_by_the_dead, signed_here

pytestmark = pytest.mark.skipif(not BOOT.exists(), reason="processes are told apart by what Linux says about them")


def signature_of_a_dead_process() -> str:
    script = "from caged.processes import signature; print(signature())"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()


def test_who_is_there_is_not_dead() -> None:
    assert signed_here(signature())
    assert not signed_by_the_dead(signature())


def test_who_ended_is_dead() -> None:
    assert signed_by_the_dead(signature_of_a_dead_process())


def test_a_number_that_was_given_to_another_process_is_not_that_process() -> None:
    pid, _, place = signature().split("-")
    assert signed_by_the_dead(f"{pid}-00000000-{place}")


def test_of_another_computer_or_container_or_boot_nobody_can_tell(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = signature_of_a_dead_process()
    another_boot = tmp_path_factory.mktemp("boot") / "boot_id"
    another_boot.write_text("another")
    elsewhere = [
        ("BOOT", another_boot),
        ("BOOT", another_boot.with_name("none")),
        ("process_namespace", lambda: "pid:[7]"),
    ]
    for name, value in elsewhere:
        with monkeypatch.context() as there:
            there.setattr(processes, name, value)
            assert not signed_here(dead)
            assert not signed_by_the_dead(dead)
    monkeypatch.setattr("platform.node", lambda: "another")
    assert not signed_by_the_dead(dead)
