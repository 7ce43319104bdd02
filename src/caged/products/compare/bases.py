"""Whether all folders were measured with the same catalogue, groups and treatment of missing lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caged.errors import ConfigError
from caged.evaluation.basis import Unlike
from caged.evaluation.metrics import MetricKey
from caged.products.compare.entries import Entry
from caged.products.compare.groups import split_of


@dataclass(frozen=True)
class _Pair:
    """Two folders of the same split that differ in something."""

    one: Entry
    other: Entry
    unlike: Unlike

    def __str__(self) -> str:
        return f"{self.one.folder} and {self.other.folder}: {self.unlike.sentence}"


@dataclass(frozen=True)
class Bases:
    """What differs between the folders, and which metrics cannot be compared for it."""

    pairs: tuple[_Pair, ...]
    silent: tuple[Entry, ...]  # folders of earlier versions, which do not say it

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Bases:
        """Each against the first one of its split: others on another split have other catalogues by nature."""
        first: dict[tuple[str, str], Entry] = {}
        pairs: dict[str, _Pair] = {}
        for entry in entries:
            if entry.basis is None:
                continue
            base = first.setdefault(split_of(entry), entry)
            for unlike in base.basis.unlike(entry.basis) if base.basis is not None else ():
                pairs.setdefault(unlike.fix, _Pair(base, entry, unlike))
        return cls(tuple(pairs.values()), tuple(entry for entry in entries if entry.basis is None))

    def allow(self, key: MetricKey) -> bool:
        return not any(pair.unlike.concerns(key) for pair in self.pairs)

    def check(self, key: MetricKey) -> None:
        """An error for a metric that somebody asked for and that cannot be compared."""
        for pair in self.pairs:
            if pair.unlike.concerns(key):
                raise ConfigError(f"{key} cannot be compared: {pair}; {pair.unlike.fix}, or leave this metric out")

    @property
    def warnings(self) -> list[str]:
        return [f"{pair}; metrics that depend on it are left out: {pair.unlike.fix}" for pair in self.pairs]

    @property
    def notes(self) -> list[str]:
        if not self.silent:
            return []
        folder = self.silent[0].folder
        return [
            f"{folder} does not say which catalogue, groups and treatment of missing lists it was measured with: "
            f"compared as if they were the same"
        ]
