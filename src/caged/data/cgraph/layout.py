"""Names of the files in a `.cgraph` folder, and its manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from caged.errors import DataError, RunError
from caged.files import read_json

SUFFIX = ".cgraph"
FORMAT, VERSION = "caged graph", 1
MANIFEST, USERS, ITEMS = "manifest.json", "users.arrow", "items.arrow"
USER_OFFSETS, ITEMS_BY_USER = "user_offsets.npy", "items.npy"
ITEM_OFFSETS, USERS_BY_ITEM = "item_offsets.npy", "item_users.npy"
OF_A_PART = (USER_OFFSETS, ITEMS_BY_USER, ITEM_OFFSETS, USERS_BY_ITEM)
GRAPH_PARTS = ("train", "valid", "test")
DEVELOPMENT = "development"  # the fingerprint of train and valid together
NEEDED = ("version", "users", "items", "interactions", "fingerprints", "files", "merged_duplicates", "notes", "split")

HASHED_BYTES = 1 << 24


def is_graph_folder(folder: Path) -> bool:
    return folder.is_dir() and (folder / MANIFEST).is_file() and (folder / "train" / USER_OFFSETS).is_file()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, once every file that it names is there in its full size."""
    try:
        manifest = read_json(folder / MANIFEST)
    except RunError as error:
        raise DataError(str(error)) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{folder / MANIFEST} is not the manifest of a graph; import the log again")
    if manifest.get("version") != VERSION:
        raise DataError(
            f"{folder} has version {manifest.get('version')} of the graph format, and this caged reads version "
            f"{VERSION}; import the log again, or use the caged that wrote it"
        )
    missing = [key for key in NEEDED if key not in manifest]
    if missing:
        raise DataError(f"{folder / MANIFEST} lacks {', '.join(missing)}; import the log again")
    for name, said in manifest["files"].items():
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if found != said["bytes"]:
            state = "is missing" if found is None else f"has {found:,} bytes, not {said['bytes']:,}"
            raise DataError(f"{path} {state}; import the log again, or copy the whole folder again")
    return manifest


def verify(folder: Path) -> None:
    """Read every file and compare it with its checksum; training does not, since it would read everything twice."""
    for name, said in read_manifest(folder)["files"].items():
        if checksum(folder / name) != said["sha256"]:
            raise DataError(f"{folder / name} is damaged: it no longer has its checksum; import the log again")


def checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASHED_BYTES):
            digest.update(block)
    return digest.hexdigest()
