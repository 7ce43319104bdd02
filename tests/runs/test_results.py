"""Records and the archives that carry them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caged.errors import RunError
from caged.runs.results import ResultPlace, pack, unpack, write_result

RUN: dict[str, Any] = {
    "status": "running",
    "command": "caged train --data '/home/ann lee/log.csv' --out=/tmp/run --set train.epochs=3 --record ./results",
    "spec": {
        "method": "lightgcn",
        "protocol": "honest",
        "seed": 4,
        "source": "/home/ann lee/log.csv",
        "presets": ["/a/b.toml"],
    },
    "dataset": {"name": "log"},
    "error": "could not write /tmp/run/metrics.json: No space left on device; free space",
    "data_path": "/home/ann lee/log.csv",
    "record": "/tmp/results/x.json",
}


def a_record(root: Path, name: str, content: object) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def an_archive(path: Path, **members: bytes | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def test_where_a_record_lives() -> None:
    assert ResultPlace(Path("r")).path("log", RUN["spec"]) == Path("r/log/honest/lightgcn/seed4.json")
    assert ResultPlace(Path("r"), "v2.1").path("log", RUN["spec"]) == Path("r/log/honest/lightgcn-v2.1/seed4.json")


def test_a_record_names_no_place_on_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_result(path, RUN, None)
    stored = json.loads(path.read_text())
    assert stored["command"] == (
        "caged train --data 'ann lee/log.csv' --out=run --set train.epochs=3 --record ./results"
    )
    assert stored["spec"]["source"] == "ann lee/log.csv"
    assert stored["spec"]["presets"] == ["b.toml"]
    assert stored["error"] == "could not write metrics.json: No space left on device; free space"
    assert "data_path" not in stored
    assert "record" not in stored
    assert stored["metrics"] is None
    assert RUN["spec"]["source"] == "/home/ann lee/log.csv"  # run.json keeps what was said


def test_round_trip_and_equal_bytes(tmp_path: Path) -> None:
    names = ["a/honest/m/seed1.json", "a/honest/m/seed2.json", "b/paper/m-x/seed1.json"]
    for root, order in (("one", names), ("two", names[::-1])):
        for name in order:
            a_record(tmp_path / root, name, {"name": name})
        (tmp_path / root / "notes.txt").write_text("not a record")
        assert pack(tmp_path / root, tmp_path / f"{root}.tar.gz") == 3
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    assert unpack(tmp_path / "one.tar.gz", tmp_path / "copy") == 3
    for name in names:
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert not (tmp_path / "copy" / "notes.txt").exists()
    assert unpack(tmp_path / "one.tar.gz", tmp_path / "copy") == 3  # the same again is fine


def test_values_per_user_travel_with_their_record(tmp_path: Path) -> None:
    a_record(tmp_path / "one", "a/honest/m/seed1.json", {})
    beside = tmp_path / "one" / "a/honest/m/seed1.users.parquet"
    beside.write_bytes(b"PAR1 values PAR1")
    (tmp_path / "one" / "a/honest/m/seed2.users.parquet").write_bytes(b"PAR1")  # of no record
    assert pack(tmp_path / "one", tmp_path / "one.tar.gz") == 1
    assert unpack(tmp_path / "one.tar.gz", tmp_path / "copy") == 1
    copied = sorted(path.name for path in (tmp_path / "copy").rglob("seed*"))
    assert copied == ["seed1.json", "seed1.users.parquet"]
    beside.write_bytes(b"no table")
    with pytest.raises(RunError, match=r"seed1\.users\.parquet is not a Parquet file"):
        pack(tmp_path / "one", tmp_path / "one.tar.gz")


def test_records_that_differ_are_kept_unless_asked(tmp_path: Path) -> None:
    a_record(tmp_path / "one", "a.json", {"value": 1})
    a_record(tmp_path / "one", "b.json", {"value": 1})
    pack(tmp_path / "one", tmp_path / "one.tar.gz")
    existing = a_record(tmp_path / "copy", "b.json", {"value": 2})
    with pytest.raises(RunError, match=r"1 records exist already .*b\.json; use --overwrite"):
        unpack(tmp_path / "one.tar.gz", tmp_path / "copy")
    assert json.loads(existing.read_text()) == {"value": 2}
    assert not (tmp_path / "copy" / "a.json").exists()
    existing.write_text("{half")  # a damaged record can be replaced as well
    assert unpack(tmp_path / "one.tar.gz", tmp_path / "copy", overwrite=True) == 2
    assert json.loads(existing.read_text()) == {"value": 1}


def _link(kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo("x.json")
    info.type = kind
    info.linkname = target
    return info


@pytest.mark.parametrize(
    "member",
    [
        {"../outside.json": b"{}"},
        {"a/../../outside.json": b"{}"},
        {"/tmp/outside.json": b"{}"},
        {"x.json": _link(tarfile.SYMTYPE)},
        {"x.json": _link(tarfile.LNKTYPE)},
        {"x.json": _link(tarfile.DIRTYPE)},
        {"x.json": _link(tarfile.FIFOTYPE)},
        {"x.sh": b"{}"},
        {"x.json": b"{half"},
        {"x.json": b"\xff\xfe"},
        {"x.json": b'"' + b"a" * (4 << 20) + b'"'},
    ],
    ids=[
        "up",
        "up within",
        "absolute",
        "symlink",
        "hard link",
        "folder",
        "fifo",
        "suffix",
        "no json",
        "no text",
        "huge",
    ],
)
def test_what_is_no_record_is_refused_before_anything_is_written(
    member: dict[str, bytes | tarfile.TarInfo], tmp_path: Path
) -> None:
    archive = an_archive(tmp_path / "bad.tar.gz", **{"good.json": b"{}", **member})
    with pytest.raises(RunError, match=r"bad\.tar\.gz"):
        unpack(archive, tmp_path / "deep" / "copy")
    assert [path.name for path in tmp_path.rglob("*")] == ["bad.tar.gz"]


def cut_short(content: bytes) -> bytes:
    return content[:-20]


def overwritten(content: bytes) -> bytes:
    return content[:30] + b"\0\0\0" + content[33:]


def unzipped(content: bytes) -> bytes:
    return gzip.decompress(content)


def no_tar(content: bytes) -> bytes:
    return gzip.compress(b"{}" * 600)


@pytest.mark.parametrize("damage", [cut_short, overwritten, unzipped, no_tar])
def test_a_damaged_archive(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    archive = an_archive(tmp_path / "bad.tar.gz", **{f"r{number}.json": b'"%d"' % number for number in range(50)})
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(RunError, match="is not a readable"):
        unpack(archive, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    a_record(tmp_path / "one", "a/x.json", {})
    archive = tmp_path / "one.tar.gz"
    pack(tmp_path / "one", archive)
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="Not a directory"):
        unpack(archive, tmp_path / "file" / "copy")
    with pytest.raises(RunError, match="could not write"):
        pack(tmp_path / "one", tmp_path / "file" / "one.tar.gz")
    (tmp_path / "copy" / "a" / "x.json").mkdir(parents=True)
    with pytest.raises(RunError, match="cannot read record"):
        unpack(archive, tmp_path / "copy")
    with pytest.raises(RunError, match="holds no records"):
        pack(_empty(tmp_path), tmp_path / "x.tar.gz")
    a_record(tmp_path / "one", "bad.json", {}).write_text("{half")
    with pytest.raises(RunError, match=r"bad\.json is not valid JSON"):
        pack(tmp_path / "one", tmp_path / "x.tar.gz")
    assert not (tmp_path / "x.tar.gz").exists()


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"
