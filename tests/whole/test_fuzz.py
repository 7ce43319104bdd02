"""A thousand files that nobody wrote by hand: every one is read, or refused in one sentence, and leaves nothing behind.

Further logs and lists are drawn with their meaning (`tests.data.generated_logs`): they are accepted with the right
pairs, ratings and recall, or refused. The counts are printed; pytest shows them with `-s` or `-rP`.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, seed, settings

from caged.cli import main
from caged.data import Columns, Interactions, read_log
from caged.data.readers.canonical import read_canonical
from caged.errors import CagedError
from caged.products.audit import audit_lists
from tests.cli.invoke import caged, ended, spawn
from tests.data.generated_files import FORMATS
from tests.data.generated_logs import AuditCase, drawn_audit, drawn_case

pytest.importorskip("polars")

FILES_PER_FORMAT = 120  # times ten formats
TRAINED = 8  # accepted and as many refused files of each format go through `caged train` as well, which takes longer

fuzzing = settings(
    max_examples=FILES_PER_FORMAT,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def outcome_of(read: Callable[[], Interactions]) -> Interactions | CagedError:
    """Anything but success and a `CagedError` ends the test."""
    try:
        return read()
    except CagedError as error:
        message = str(error)
        assert "\n" not in message.replace("\\n", "").strip()
        assert len(message) < 1500
        return error


def cli_refused(folder: Path, *arguments: str | Path) -> bool:
    """Whether the command refused its input: with exit code 2 and one error line, nothing else."""
    done = caged(*arguments, cwd=folder)
    assert done.code in (0, 2), done
    assert "Traceback" not in done.err
    if done.code == 2:
        assert done.error
        assert done.out == ""
    return done.code == 2


def listed(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("suffix", FORMATS)
def test_any_file_is_read_or_refused(
    suffix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(main, "app", typer.main.get_command(main.app))  # typer would build it anew for every call
    path, out = tmp_path / f"log{suffix}", tmp_path / "out"
    counts: Counter[str] = Counter()

    @seed(zlib.crc32(suffix.encode()))  # the same files in every run, and others for every format
    @fuzzing
    @given(FORMATS[suffix])
    def check(content: bytes) -> None:
        path.write_bytes(content)
        log = outcome_of(lambda: read_log(path))
        refused = cli_refused(tmp_path, "data", "import", path, "-o", out)
        counts.update(["files", "refused" if refused else "accepted"])
        # Both ways to read agree on what a log is, and on what is in it.
        assert refused == isinstance(log, CagedError), log
        if isinstance(log, Interactions):
            imported = read_canonical(out)
            assert imported.to_arrow().equals(log.to_arrow())
            assert imported.merged == log.merged
            assert imported.notes == log.notes
            shutil.rmtree(out)
        if (counts["refused"] if refused else counts["trained"] + 1) <= TRAINED:
            counts["trained"] += not cli_refused(
                tmp_path, "train", "--data", path, "--method", "mostpop", "--set", "eval.k=1", "--out", out
            )
            shutil.rmtree(out, ignore_errors=True)
        assert listed(tmp_path) == {path.name}
        assert path.read_bytes() == content

    check()
    print(f"fuzzed {suffix}: {dict(sorted(counts.items()))}")
    for name, count in counts.items():
        record_property(f"{suffix} {name}", count)
    assert counts["files"] >= FILES_PER_FORMAT
    assert counts["accepted"] >= 10
    assert counts["refused"] >= 10
    assert counts["trained"] >= 1


def test_there_are_a_thousand_files() -> None:
    assert len(FORMATS) * FILES_PER_FORMAT >= 1000


# ---------------------------------------------------------------- files whose meaning is known


def check_log(seed: int, folder: Path) -> str:
    """A drawn log is read with the right pairs and the latest ratings, or refused; which of the two."""
    case = drawn_case(seed)
    path = folder / f"log{case.suffix}"
    path.write_bytes(case.content)
    log = outcome_of(lambda: read_log(path, ids=case.ids))  # type: ignore[arg-type]
    if isinstance(log, CagedError):
        assert case.pairs is None, (seed, log)
        return "refused"
    rows = log.to_arrow().to_pylist()
    assert {(row["user_id"], row["item_id"]): row.get("rating") for row in rows} == case.pairs, seed
    return "accepted"


def check_audit(seed: int, folder: Path, *, by_command: bool = False) -> str:
    case = drawn_audit(seed)
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    recall = _recall_by_command(case, folder) if by_command else _recall(case, folder)
    assert (recall is None) == (case.recall is None), (seed, recall, case.recall)
    assert recall is None or recall == pytest.approx(case.recall, abs=1e-12), seed
    return "refused" if recall is None else "accepted"


def _recall(case: AuditCase, folder: Path) -> float | None:
    files = {name: folder / f"{name}.csv" for name in ("train", "test")}
    columns = Columns().reading_ids(case.ids)
    try:
        return audit_lists(folder / "recs.csv", **files, ks=(case.k,), columns=columns).metrics[f"recall@{case.k}"]
    except CagedError:
        return None


def _recall_by_command(case: AuditCase, folder: Path) -> float | None:
    given = ["audit", "recs.csv", "--train", "train.csv", "--test", "test.csv", "--ids", case.ids, "-k", str(case.k)]
    said = json_of_process(folder, *given)
    return None if said is None else float(said["metrics"][f"recall@{case.k}"])


def check_log_by_command(seed: int, folder: Path) -> str:
    case = drawn_case(seed)
    (folder / f"log{case.suffix}").write_bytes(case.content)
    said = json_of_process(folder, "data", "info", f"log{case.suffix}", "--ids", case.ids)
    assert (said is None) == (case.pairs is None), (seed, said)
    if said is None or case.pairs is None:
        return "refused"
    assert said["interactions"] == len(case.pairs), seed
    return "accepted"


def json_of_process(folder: Path, *arguments: str) -> dict[str, Any] | None:
    """What a process of its own says, as a user would start it; None where it refuses its input, in one sentence."""
    before = listed(folder)
    done = ended(spawn(*arguments, "--json", cwd=folder))
    assert done.code in (0, 2), done
    assert "Traceback" not in done.err
    assert listed(folder) == before  # nothing is left behind
    if done.code == 0:
        return dict(json.loads(done.out))
    assert done.out == ""
    assert done.error
    assert len(done.error) < 1500
    return None


def test_logs_and_lists_with_a_known_meaning(tmp_path: Path) -> None:
    logs = Counter(check_log(seed, tmp_path) for seed in range(300))
    audits = Counter(check_audit(seed, tmp_path) for seed in range(10))
    assert min(logs["accepted"], logs["refused"]) >= 50
    assert audits["accepted"] >= 5


@pytest.mark.slow
def test_ten_thousand_logs_and_lists_with_a_known_meaning(tmp_path: Path) -> None:
    logs = Counter(check_log(seed, tmp_path) for seed in range(1_000, 10_000))
    audits = Counter(check_audit(seed, tmp_path) for seed in range(1_000, 2_000))
    print(f"logs: {dict(logs)}, audits: {dict(audits)}")
    assert logs.total() + audits.total() == 10_000
    assert min(*logs.values(), *audits.values()) >= 100


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_log_by_command, partial(check_audit, by_command=True)], ids=["logs", "audits"])
def test_a_hundred_of_them_by_command_line(check: Callable[[int, Path], str], tmp_path: Path) -> None:
    """A process each, two at a time."""

    def in_a_folder_of_its_own(seed: int) -> str:
        folder = tmp_path / str(seed)
        folder.mkdir()
        return check(seed, folder)

    with ThreadPoolExecutor(2) as two:
        found = Counter(two.map(in_a_folder_of_its_own, range(20_000, 20_100)))
    print(dict(found))
    assert found.total() == 100
    assert min(found["accepted"], found["refused"]) >= 5
