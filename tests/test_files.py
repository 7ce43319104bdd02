"""Files that are complete or absent."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from caged.errors import ConfigError, RunError
from caged.files import (
    CHECKSUM,
    check_file,
    json_ready,
    make_output_folder,
    new_folder,
    read_json,
    read_sealed_json,
    remove_leftovers,
    replacing,
    write_json,
    write_sealed_json,
    write_text,
)
from caged.processes import BOOT


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"
    write_text(target, "old")
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


def test_the_content_is_on_the_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut could leave the name of a file without what is in it."""
    synced: list[tuple[bytes, bool]] = []

    def look(descriptor: int) -> None:
        content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        synced.append((content, target.exists()))

    monkeypatch.setattr(os, "fsync", look)
    target = tmp_path / "folder"
    with new_folder(target) as temporary:
        (temporary / "below").mkdir()
        for name in ("a", "below/b"):
            (temporary / name).write_text(name)
    assert sorted(synced) == [(b"a", False), (b"below/b", False)]
    synced.clear()
    target = tmp_path / "file"
    write_text(target, "whole")
    assert synced == [(b"whole", False)]


LINUX = pytest.mark.skipif(not BOOT.exists(), reason="processes are told apart by what Linux says about them")
WRITING = """
import sys
from pathlib import Path
from caged.files import new_folder
with new_folder(Path(sys.argv[1])) as temporary:
    (temporary / "spool").write_text("much")
    print("writing", flush=True)
    sys.stdin.readline()
"""


def writing(target: Path) -> subprocess.Popen[str]:
    """Another process, which has begun to write a folder and goes on until it reads a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


@LINUX
def test_what_a_killed_process_left_of_a_folder_is_removed_by_the_next_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "shop [1].cgraph"
    killed = writing(target)
    killed.kill()
    killed.wait()
    other = writing(tmp_path / "shop.cgraph")
    others = set(tmp_path.glob(".shop.cgraph.*"))
    assert len(others) == len(list(tmp_path.glob(".shop ?1?.cgraph.*.tmp"))) == 1
    with new_folder(target) as temporary:
        assert set(tmp_path.iterdir()) == {temporary, *others}
        with new_folder(target):  # nor what this process writes itself
            assert temporary.is_dir()
    other.communicate("\n")
    assert not caplog.records


@LINUX
def test_what_another_process_writes_is_never_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    slow = writing(tmp_path / "out")
    [at_work] = tmp_path.iterdir()
    with new_folder(tmp_path / "out"):
        assert (at_work / "spool").read_text() == "much"
    (tmp_path / "out").rmdir()
    slow.communicate("\n")
    assert slow.returncode == 0
    assert (tmp_path / "out" / "spool").read_text() == "much"
    assert not caplog.records


@pytest.mark.parametrize("name", [".out.0a1b2c3d.tmp", ".out.1-0a1b2c3d-0a1b2c3d.0a1b2c3d.tmp"])
def test_what_nobody_can_tell_about_is_named(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of an earlier version, or of another computer."""
    (tmp_path / name).mkdir()
    (tmp_path / ".out.notes.tmp").mkdir()
    with new_folder(tmp_path / "out"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {name, "out", ".out.notes.tmp"}
    [told] = caplog.messages
    assert told.startswith(f"{tmp_path / name} was to become {tmp_path / 'out'} and was never finished")
    assert told.endswith("delete it")


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), ValueError("bad"), KeyboardInterrupt()]
)
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "x.txt"
    write_text(target, "old")

    def write() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(RunError if isinstance(error, OSError) else type(error)):
        write()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


def test_a_full_disk_is_one_sentence_about_the_target(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"
    with (
        pytest.raises(RunError, match=f"could not write {target}: No space left on device; free space"),
        replacing(target),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = ["run.json", ".hidden", "notes.tmp"]
    for name in [*kept, ".run.json.0a1b2c3d.tmp", ".tmphc6uTQ"]:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
    remove_leftovers(tmp_path / "missing")


def test_json_has_no_nan_and_no_numpy(tmp_path: Path) -> None:
    value = {
        "nan": math.nan,
        "list": [math.inf, np.float32(0.5), np.int64(3)],
        3: (1, 2),
        "path": Path("a/b"),
        "text": "ä",
    }
    write_json(tmp_path / "x.json", value)
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"nan": None, "list": [None, 0.5, 3], "3": [1, 2], "path": "a/b", "text": "ä"}
    assert "ä" in text
    assert read_json(tmp_path / "x.json") == json_ready(value)


@pytest.mark.parametrize("content", [b'{"a": ', b"", b"\xff\xfe{}"])
def test_truncated_json_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(RunError, match="not readable JSON") as caught:
        read_json(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sealed_file_notices_a_change(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    values = {"metrics": {"recall@20": 0.1, "gini@20": float("nan")}, "notes": ["\u00e9"]}
    write_sealed_json(path, values)
    assert read_sealed_json(path) == json_ready(values)
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("0.1", "0.2"), encoding="utf-8")
    with pytest.raises(RunError, match="was changed since it was written"):
        read_sealed_json(path)
    unsealed = {
        key: value for key, value in json.loads(whole).items() if key != CHECKSUM
    }  # as earlier versions wrote it
    path.write_text(json.dumps(unsealed), encoding="utf-8")
    assert read_sealed_json(path) == json_ready(values)


def test_missing_json_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"x\.json does not exist"):
        read_json(tmp_path / "x.json")


def test_an_output_folder_is_new_or_empty(tmp_path: Path) -> None:
    folder = make_output_folder(tmp_path / "a" / "b")
    assert folder.is_dir()
    assert list(make_output_folder(folder).iterdir()) == []
    (folder / "x").touch()
    with pytest.raises(RunError, match="is not empty"):
        make_output_folder(folder)
    with pytest.raises(RunError, match="Not a directory"):
        make_output_folder(folder / "x" / "y")
    with pytest.raises(RunError, match="is a file"):
        make_output_folder(folder / "x")


def test_numbers_of_a_list_share_a_line(tmp_path: Path) -> None:
    value = {
        "epochs": [1, 2, 3],
        "values": [0.5, -1e-05],
        "names": ["[\n1,\n2\n]", "b"],
        "none": [],
        "mixed": [1, None],
    }
    write_json(tmp_path / "x.json", value)
    text = (tmp_path / "x.json").read_text()
    assert '"epochs": [1, 2, 3],\n' in text
    assert '"values": [0.5, -1e-05],\n' in text
    assert read_json(tmp_path / "x.json") == value


def test_a_link_is_followed_and_stays_one(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    real, link = tmp_path / "pages" / "today.html", tmp_path / "latest.html"
    link.symlink_to(real)
    for content in ("new", "newer"):  # a link to nothing yet, and one to a file
        check_file("--html", link)
        write_text(link, content)
        assert link.is_symlink()
        assert real.read_text() == content
    assert [path.name for path in real.parent.iterdir()] == ["today.html"]
    link.unlink()
    link.symlink_to(tmp_path / "nowhere" / "today.html")
    with pytest.raises(ConfigError, match="in a folder that exists"):
        check_file("--html", link)


def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reader, writer = os.pipe()
    (tmp_path / "open").symlink_to(f"/dev/fd/{writer}")  # as /dev/stdout leads to a pipe, which has no name
    for name in ("pipe", "link", "open"):
        with pytest.raises(ConfigError, match=r"cannot write --html .* no regular file; name another one$"):
            check_file("--html", tmp_path / name)
        with pytest.raises(RunError, match=r"could not write .*: it is no regular file"):
            write_text(tmp_path / name, "x")
    assert (tmp_path / "pipe").is_fifo()
    os.close(reader)
    os.close(writer)


def test_no_output_takes_the_place_of_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, logs = tmp_path / "run", tmp_path / "logs"
    for file in (run / "run.json", logs / "train.csv", logs / "old.html"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    (tmp_path / "link.csv").symlink_to(logs / "train.csv")
    monkeypatch.chdir(tmp_path)
    for path, inputs in ((Path("run/run.json"), [run / "run.json"]), (run / "new.html", ["run", None])):
        with pytest.raises(ConfigError, match=r"the same command reads .*; name a file elsewhere$"):
            check_file("--html", path, inputs)
    check_file("--html", tmp_path / "new.html", [run, None])
    for path in (logs / "train.csv", tmp_path / "link.csv"):
        for given in ("logs", "logs/train.csv"):
            with pytest.raises(ConfigError, match=r"the same command reads .*; name a new file$"):
                check_file("--html", path, logs=[None, given])
    for path in (logs / "new.csv", logs / "old.html"):  # a page may be written again beside the logs
        check_file("--html", path, logs=[logs])
    with pytest.raises(ConfigError, match=r"reads it; name a new file$"):
        check_file("--html", logs / "old.html", logs=[logs / "old.html"])
