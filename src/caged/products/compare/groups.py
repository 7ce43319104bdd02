"""Which runs are seeds of the same method, what each method is called, and what may be compared at all."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from caged.errors import ConfigError, RunError, unknown
from caged.evaluation.significance import LEAST_RUNS
from caged.models import display_name
from caged.products.compare.entries import Entry

Split = tuple[str, str]  # fingerprints of train and test


@dataclass(frozen=True, eq=False)
class Group:
    """The runs of one method, which differ by their seed only; or one audit."""

    name: str
    entries: tuple[Entry, ...]

    def values(self, key: str) -> list[float]:
        return [entry.metrics[key] for entry in self.entries]

    def mean(self, key: str) -> float:
        return statistics.fmean(self.values(key))

    def spread(self, key: str) -> float:
        """Standard deviation over the runs, NaN for one run."""
        return statistics.stdev(self.values(key)) if len(self.entries) > 1 else float("nan")

    @property
    def method(self) -> str:
        """Its name in the registry; of an audit, what its lists are called."""
        return self.entries[0].method

    @property
    def title(self) -> str:
        """Its name on pages: that of the method as people write it, with the settings that tell it from others."""
        method = self.method
        own = self.name == method or self.name.startswith(f"{method} (")
        return display_name(method) + self.name.removeprefix(method) if own else self.name

    @property
    def splits(self) -> list[Split]:
        return [split_of(entry) for entry in self.entries]


def kind_of_test(base: Group, group: Group) -> Literal["users", "seeds"] | None:
    """One run of each is tested over users, many runs of each over seeds, anything between not at all."""
    runs = len(base.entries), len(group.entries)
    if runs == (1, 1):
        return "users"
    return "seeds" if min(runs) >= LEAST_RUNS else None


def split_of(entry: Entry) -> Split:
    return entry.fingerprints["train"], entry.fingerprints.get("test", "no test part")


def same_split(one: Entry, other: Entry) -> bool:
    """One test part, and one train part, or one development part: what a run holds out to choose an epoch, another may
    train on, and both mask the same pairs."""
    (train, test), (other_train, other_test) = split_of(one), split_of(other)
    return test == other_test and (train == other_train or development_of(one) == development_of(other))


def development_of(entry: Entry) -> str:
    """The fingerprint of train with valid."""
    return entry.fingerprints.get("development", entry.fingerprints["train"])


def grouped(entries: Sequence[Entry]) -> list[Group]:
    """Runs with the same method and settings together, in the order in which they were given."""
    by_settings: dict[str, list[Entry]] = {}
    for entry in entries:
        by_settings.setdefault(_identity(entry), []).append(entry)
    parts: list[list[Entry]] = []
    for members in by_settings.values():
        # The same seed twice is no second sample: such runs are compared, not averaged.
        seeds = Counter((entry.seed, split_of(entry)) for entry in members)
        parts += [members] if max(seeds.values()) == 1 else [[entry] for entry in members]
    return [Group(name, tuple(members)) for name, members in zip(_names(parts), parts, strict=True)]


def baseline_first(groups: Sequence[Group], baseline: str | None) -> list[Group]:
    """The groups, the one called `baseline` (or holding that folder) moved to the front."""
    if baseline is None:
        return list(groups)
    for index, group in enumerate(groups):
        if baseline == group.name or any(Path(baseline) == entry.folder for entry in group.entries):
            return [group, *groups[:index], *groups[index + 1 :]]
    raise ConfigError(unknown("baseline", baseline, [group.name for group in groups]))


def check_comparable(entries: Sequence[Entry]) -> None:
    """Refuse what would compare unlike things: different protocols, unknown data, or nothing at all."""
    if len(entries) < 2:
        raise ConfigError(f"compare needs at least two folders; got {len(entries)}: add a run or an audit")
    places = Counter(entry.folder.resolve() for entry in entries)
    twice = next((entry.folder for entry in entries if places[entry.folder.resolve()] > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is given twice; give each folder once")
    for entry in entries:
        if "train" not in entry.fingerprints:
            raise RunError(f"{entry.folder} does not say which training part it used; evaluate it again")
    named: dict[str, Entry] = {}
    for entry in entries:
        if entry.protocol is not None:
            named.setdefault(entry.protocol, entry)
    if len(named) > 1:
        one, other, *_ = named.values()
        raise ConfigError(
            f"{one.folder} was made under protocol '{one.protocol}' and {other.folder} under '{other.protocol}'; "
            "numbers of different protocols cannot be compared: choose runs of one"
        )


def check_splits(groups: Sequence[Group]) -> bool:
    """Whether all runs share one split; else every method must have one run on each of several splits."""
    if len(groups) < 2:
        only = groups[0]
        raise ConfigError(
            f"all {len(only.entries)} runs are {only.name} with the same settings apart from the seed; add runs of "
            "another method to compare with"
        )
    first = groups[0].entries[0]
    others = [entry for group in groups for entry in group.entries]
    if all(split_of(entry) == split_of(first) for entry in others):
        return True
    splits = sorted(groups[0].splits)
    if len(splits) > 1 and len(set(splits)) == len(splits) and all(sorted(group.splits) == splits for group in groups):
        return False
    if all(same_split(first, entry) for entry in others):
        return True
    raise ConfigError(_unlike_data(first, next(entry for entry in others if not same_split(first, entry))))


def _unlike_data(first: Entry, other: Entry) -> str:
    """Why these two cannot be compared, by the names of their datasets where they have different ones."""
    if first.dataset and other.dataset and first.dataset != other.dataset:
        return (
            f"{first.folder} was measured on {first.dataset} and {other.folder} on {other.dataset}, so their numbers "
            "cannot be compared; compare runs on one dataset, or use caged results table, which shows several"
        )
    parts = zip(("train", "test"), split_of(first), split_of(other), strict=True)
    part = next(part for part, one, another in parts if one != another)
    where = f" of {first.dataset}" if first.dataset and first.dataset == other.dataset else ""
    return (
        f"{first.folder} and {other.folder} have different {part} parts{where}, so their numbers cannot be compared; "
        "evaluate both on one split, or give every method one run on each of the splits"
    )


def common_ks(entries: Sequence[Entry]) -> tuple[int, ...]:
    """The cut-offs that all have, in the order of the first."""
    shared = [k for k in entries[0].ks if all(k in entry.ks for entry in entries)]
    if not shared:
        odd = next(entry for entry in entries if not set(entry.ks) & set(entries[0].ks))
        raise ConfigError(
            f"{entries[0].folder} has metrics at k = {_listed(entries[0].ks)} and {odd.folder} at k = "
            f"{_listed(odd.ks)}; values at different k cannot be compared: evaluate both at one k"
        )
    return tuple(shared)


def _listed(ks: Sequence[int]) -> str:
    return ", ".join(map(str, ks)) or "none"


def _identity(entry: Entry) -> str:
    if entry.kind == "audit":
        return f"audit {entry.folder.resolve()}"
    return json.dumps([entry.method, entry.dataset, entry.settings], sort_keys=True)


def _names(parts: Sequence[Sequence[Entry]]) -> list[str]:
    """The method; where several share it, with the settings in which they differ; else the folder."""
    names = [members[0].method for members in parts]
    names = [_with_settings(index, names, parts) if names.count(name) > 1 else name for index, name in enumerate(names)]
    names = [parts[i][0].folder.name if names.count(name) > 1 else name for i, name in enumerate(names)]
    return [str(parts[i][0].folder) if names.count(name) > 1 else name for i, name in enumerate(names)]


def _with_settings(index: int, names: Sequence[str], parts: Sequence[Sequence[Entry]]) -> str:
    alike = [parts[i][0].settings for i, name in enumerate(names) if name == names[index]]
    mine = parts[index][0].settings
    differing = [key for key in mine if any(_differs(mine[key], other, key) for other in alike)]
    if not differing:
        return names[index]
    said = ", ".join(f"{key.partition('.')[2]}={mine[key]}" for key in differing)
    return f"{names[index]} ({said})"


def _differs(value: Any, other: Any, key: str) -> bool:
    return key not in other or bool(other[key] != value)
