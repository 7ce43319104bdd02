"""Names of the files in a `.cgraph` folder, and its manifest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from caged.arguments import described
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
FILES = (USERS, ITEMS, *(f"{part}/{file}" for part in GRAPH_PARTS for file in OF_A_PART))
SMALL = (USERS, ITEMS, *(f"{part}/{file}" for part in GRAPH_PARTS for file in (USER_OFFSETS, ITEM_OFFSETS)))

HASHED_BYTES = 1 << 24


def is_graph_folder(folder: Path) -> bool:
    """Whether it is one, or was meant to be one: then what it lacks is said when it is opened."""
    whole = (folder / MANIFEST).is_file() and (folder / "train" / USER_OFFSETS).is_file()
    return folder.is_dir() and (whole or folder.suffix == SUFFIX)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, once every file that it names is there in its full size."""
    path = folder / MANIFEST
    try:
        manifest = read_json(path)
    except RunError as error:
        raise DataError(str(error)) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{path} is not the manifest of a graph; import the log again")
    if manifest.get("version") != VERSION:
        raise DataError(
            f"{folder} has version {described(manifest.get('version'))} of the graph format, and this caged reads "
            f"version {VERSION}; import the log again, or use the caged that wrote it"
        )
    _check_manifest(manifest, path)
    for name, said in manifest["files"].items():
        file = folder / name
        found = file.stat().st_size if file.is_file() else None
        if found != said["bytes"]:
            state = "is missing" if found is None else f"has {found:,} bytes, not {said['bytes']:,}"
            raise DataError(f"{file} {state}; import the log again, or copy the whole folder again")
    return manifest


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _are_sentences(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


Form = Callable[[Any], bool] | dict[str, "Form"]
FORM: dict[str, Form] = {
    "users": _is_count,
    "items": _is_count,
    "interactions": dict.fromkeys(GRAPH_PARTS, _is_count),
    "merged_duplicates": _is_count,
    "fingerprints": dict.fromkeys((*GRAPH_PARTS, DEVELOPMENT), _is_digest),
    "notes": _are_sentences,
    "split": lambda value: isinstance(value, dict),
    "files": {name: {"bytes": _is_count, "sha256": _is_digest} for name in FILES},
}


def _check_manifest(found: dict[str, Any], path: Path, form: dict[str, Form] = FORM, within: str = "") -> None:
    for key, wanted in form.items():
        where = f"{within}{key}"
        if key not in found:
            raise DataError(f"{path} lacks {where}; import the log again")
        if isinstance(wanted, dict) and isinstance(found[key], dict):
            _check_manifest(found[key], path, wanted, f"{where}.")
        elif isinstance(wanted, dict) or not wanted(found[key]):
            raise DataError(
                f"{path} says that {where} is {described(found[key])}, which no import writes; import the log again"
            )


def check_checksum(folder: Path, name: str, manifest: dict[str, Any]) -> None:
    if checksum(folder / name) != manifest["files"][name]["sha256"]:
        raise DataError(f"{folder / name} is damaged: it no longer has its checksum; import the log again")


def verify(folder: Path) -> None:
    """Read every file and compare it with its checksum; training does not, since it would read everything twice."""
    manifest = read_manifest(folder)
    for name in FILES:
        check_checksum(folder, name, manifest)


def checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASHED_BYTES):
            digest.update(block)
    return digest.hexdigest()
