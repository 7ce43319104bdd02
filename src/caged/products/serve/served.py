"""The model that answers now, and how another one takes its place."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from caged.errors import CagedError, ConfigError, RunError
from caged.files import checksum_of
from caged.products.serve.engine import Engine
from caged.products.serve.model import ServedModel
from caged.products.serve.requests import Limits
from caged.products.serve.texts import ItemTexts

logger = logging.getLogger("caged")

Stamp = tuple[tuple[Any, ...], ...]
EVERY_S = 1.0  # a watched folder is looked at


@dataclass(frozen=True, eq=False)
class Current:
    """An engine with its version. A request takes it once and keeps it to the end, whatever is swapped meanwhile."""

    name: str
    version: str
    engine: Engine
    texts: ItemTexts
    since: float  # seconds since 1970


class Served:
    """An artefact folder, its current model, and its swaps."""

    def __init__(self, name: str, folder: Path, limits: Limits | None = None) -> None:
        self.name, self.folder = name, folder
        self.limits = limits or Limits()
        self.swaps = self.refused = 0
        self._lock = Lock()  # one swap at a time
        self._stamp = stamp_of(folder)
        self.current = self._load()

    @property
    def engine(self) -> Engine:
        return self.current.engine

    def _load(self) -> Current:
        """Whole, checked and ready to answer, or an error."""
        try:
            engine = Engine(ServedModel.load(self.folder), self.limits)
            engine.warm_up()
            texts = ItemTexts(engine.model)
            texts.prepare()
        except CagedError:
            raise
        except Exception as error:  # whatever a broken folder makes a library say
            raise RunError(f"{self.folder} cannot be served ({error}); export the run again") from error
        return Current(self.name, checksum_of(engine.model.manifest.to_json())[:12], engine, texts, time.time())

    def swap(self) -> Current:
        """Load the folder as it is now. A broken one is refused, and the model of before stays."""
        with self._lock:
            self._stamp = stamp_of(self.folder)
            try:
                self.current = self._load()
            except CagedError:
                self.refused += 1
                raise
            self.swaps += 1
            return self.current

    def changed(self) -> Stamp | None:
        """What the folder looks like if that is not what was loaded last."""
        stamp = stamp_of(self.folder)
        return None if not stamp or stamp == self._stamp else stamp


def stamp_of(folder: Path) -> Stamp:
    """Changes with whatever is renamed into, written to or taken from the folder; empty where there is none."""
    try:
        found = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
    except OSError:
        return ()
    return tuple((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in found)


def serve_folders(folders: Sequence[Path], limits: Limits | None = None) -> dict[str, Served]:
    """By the names of the folders, in their order; the first is what requests mean that name none."""
    served: dict[str, Served] = {}
    for folder in folders:
        name = folder.resolve().name
        if name in served:
            raise ConfigError(f"two artefacts are called '{name}'; give their folders different names")
        served[name] = Served(name, folder, limits)
    if not served:
        raise ConfigError("no artefact is named; give at least one folder")
    return served


class Watcher:
    """A thread that swaps what has changed on disk and then stayed the same for one look."""

    def __init__(self, served: Sequence[Served], every_s: float = EVERY_S) -> None:
        self._served, self._every_s = served, every_s
        self._seen: dict[str, Stamp | None] = {}
        self._end = Event()
        self._thread = Thread(target=self._watch, name="caged-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        for one in self._served:
            now = one.changed()
            if now is not None and now == self._seen.get(one.name):
                _swap_and_tell(one)
                now = None
            self._seen[one.name] = now

    def _watch(self) -> None:
        while not self._end.wait(self._every_s):
            self.look()


def _swap_and_tell(served: Served) -> None:
    try:
        logger.info("%s: now answers with version %s", served.name, served.swap().version)
    except CagedError as error:
        logger.warning("%s: the new artefact was refused, the model of before stays: %s", served.name, error)
