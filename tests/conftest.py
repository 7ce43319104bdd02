"""Tiny generated data that several test packages share."""

from __future__ import annotations

import os

# Before numpy and torch are imported: test workers share the cores, and threads that wait for each other are slow.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

USERS, ITEMS = 60, 40

Pair = tuple[str, str]


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """What tests write need not survive a power cut. That it would is tested in test_files and test_journal."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    """60 users x 40 items with text ids; item i00 is the most popular, i39 the least."""
    generator = np.random.default_rng(7)
    popularity = 1.0 / np.arange(1, ITEMS + 1) ** 0.8
    return [
        (f"u{user:02d}", f"i{item:02d}")
        for user in range(USERS)
        for item in generator.choice(
            ITEMS, size=generator.integers(8, 16), replace=False, p=popularity / popularity.sum()
        )
    ]


def write_log(path: Path, pairs: list[Pair], header: str = "user_id,item_id") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *(",".join(pair) for pair in pairs)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def log_csv(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("data") / "log.csv", pairs)


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-file split in LightGCN text, as the `paper` protocol wants it; item 39 occurs, item 38 may not."""
    generator = np.random.default_rng(8)
    folder = tmp_path_factory.mktemp("released")
    train, test = [], []
    for user in range(30):
        items = generator.choice(ITEMS, size=12, replace=False)
        train.append(" ".join(map(str, [user, *items[:9]])))
        test.append(" ".join(map(str, [user, *items[9:]])))
    (folder / "train.txt").write_text("\n".join(train) + "\n")
    (folder / "test.txt").write_text("\n".join(test) + "\n")
    return folder


@pytest.fixture(scope="session")
def finished_run(log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished tiny run of lightgcn; tests that change it take a copy."""
    from tests.cli.invoke import train

    folder = tmp_path_factory.mktemp("finished") / "run"
    train(log_csv, folder)
    return folder
