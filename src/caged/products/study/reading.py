"""A plan from its TOML file.

    title, results                      what the study is, and where its records are (beside the file)
    [datasets.NAME]                     data or simulate; presets, set, device, threads; on.PROTOCOL
    [protocols.NAME]                    set
    [rows.NAME]                         method, variant, title, presets, set, plain, vary, init, save_weights, device,
                                        threads; on.DATASET, on.PROTOCOL; or adjust, form, keep
    [sections.NAME]                     about, set; grids of datasets, protocols, rows, seeds, priority

Settings add up in this order, and the last of a name wins: protocol, dataset, row, section. A row with `plain = true`
takes none of the protocol and the dataset but those of `data.` and `eval.`, so that all rows are judged alike.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from caged.arguments import at_least_one, checked_seed, choice, described, place
from caged.config import build
from caged.data.market import MarketConfig
from caged.errors import ConfigError, suggestion, unknown
from caged.products.study.plan import Plan, PlannedRun, ordered
from caged.runs.protocols import PROTOCOLS

_DATASET = {"data": str, "simulate": dict, "presets": list, "set": list, "device": str, "threads": int, "on": dict}
_ROW = {
    "method": str,
    "variant": str,
    "title": str,
    "presets": list,
    "set": list,
    "plain": bool,
    "vary": dict,
    "init": str,
    "save_weights": bool,
    "device": str,
    "threads": int,
    "on": dict,
    "adjust": str,
    "form": str,
    "keep": str,
}
_SECTION = {"about": str, "set": list, "grids": list}
_GRID = {"datasets": list, "protocols": list, "rows": list, "seeds": list, "priority": int}
_ON = {"presets": list, "set": list}
_VARY = {"key": str, "values": list}
_ADJUSTING = {"adjust", "form", "keep", "title", "variant"}
_OF_ADJUSTING = {"form", "keep"}
_NAME = re.compile(r"[^\W_][\w.+-]*")
_DEVICES = ("auto", "cpu", "cuda")
_TOP = {"title": str, "results": str, "datasets": dict, "protocols": dict, "rows": dict, "sections": dict}
_WORDS = {str: "text", list: "a list", dict: "a table", int: "a whole number", bool: "true or false"}


def read_plan(path: Path) -> Plan:
    """What the file says, checked as far as it can be without the options of the methods."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigError(f"cannot read plan {path}: {why}; give a TOML file such as studies/paper.toml") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"plan {path} is not valid TOML ({error}); correct the file") from error
    return _Reader(path, values).plan()


class _Reader:
    def __init__(self, path: Path, values: dict[str, Any]) -> None:
        self.path = path
        self.top = self._checked(values, _TOP, "the file")
        self.datasets = self._tables("datasets", _DATASET)
        self.protocols: dict[str, dict[str, Any]] = {name: {} for name in PROTOCOLS}
        self.protocols |= self._tables("protocols", {"set": list})
        self.rows = self._tables("rows", _ROW)
        self.sections = self._tables("sections", _SECTION)
        self._check_rows()
        self._check_names()
        self._check_values()

    def plan(self) -> Plan:
        found: dict[PlannedRun, PlannedRun] = {}
        for run in self._runs():
            before = found.get(run, run)
            sections = tuple(dict.fromkeys([*before.sections, *run.sections]))
            found[run] = replace(run, sections=sections, priority=min(before.priority, run.priority))
        if not found:
            raise self._error("it holds no runs; add a section with [[sections.NAME.grids]], see docs/studies.md")
        self._check_places(list(found))
        return Plan(
            path=self.path,
            title=self.top.get("title", self.path.stem),
            results=Path(os.path.normpath(self.path.parent / self._results())),
            runs=tuple(ordered(found.values())),
            datasets=tuple(self.datasets),
            protocols=tuple(self.protocols),
            sections={name: section.get("about", "") for name, section in self.sections.items()},
        )

    def _results(self) -> Path:
        try:
            return place("results", self.top.get("results", "results")).expanduser()
        except (ConfigError, RuntimeError) as error:  # RuntimeError: nobody has that home
            raise self._error(str(error)) from error

    # ---------------------------------------------------------------- from grids to runs

    def _runs(self) -> Iterator[PlannedRun]:
        for name, section in self.sections.items():
            for number, grid in enumerate(section.get("grids", []), start=1):
                where = f"grid {number} of section '{name}'"
                if not isinstance(grid, dict):
                    raise self._error(f"{where} is {described(grid)}; write it as [[sections.{name}.grids]]")
                yield from self._of_grid(name, self._checked(grid, _GRID, where), where)

    def _of_grid(self, section: str, grid: Mapping[str, Any], where: str) -> Iterator[PlannedRun]:
        parts = [self._named(grid, kind, where) for kind in ("datasets", "protocols", "rows")]
        seeds = grid.get("seeds", [1])
        if not seeds:
            raise self._error(f"{where} has no seeds; give some, such as [1, 2, 3], or leave seeds out")
        for seed in seeds:
            self._in(where, checked_seed, seed)
        common = {"sections": (section,), "priority": grid.get("priority", 0)}
        for row, dataset, protocol in product(parts[2], parts[0], parts[1]):
            for run in self._of_row(row, dataset, protocol, self.sections[section].get("set", []), ()):
                for seed in seeds:
                    yield replace(_with_seed(run, seed), **common)

    def _named(self, grid: Mapping[str, Any], kind: str, where: str) -> list[str]:
        known: dict[str, list[str]] = {"datasets": [*self.datasets], "protocols": [*self.protocols]}
        known["rows"] = [*self.rows, *self._values_of_rows()]
        names = grid.get(kind, [])
        if not names:
            raise self._error(f"{where} names no {kind}; add {kind} = [...]")
        for name in names:
            if name not in known[kind]:
                raise self._error(f"{where}: {unknown(kind.removesuffix('s'), str(name), known[kind])}")
        return list(names)

    def _of_row(
        self, name: str, dataset: str, protocol: str, further: list[str], before: tuple[str, ...]
    ) -> list[PlannedRun]:
        """The runs of a row with one seed: one, or one per value that it varies; `row-value` is one of them."""
        if name not in self.rows:
            of = self._values_of_rows()[name]
            return [run for run in self._of_row(of, dataset, protocol, further, before) if run.row == name]
        if name in before:
            raise self._error(
                f"row '{name}' needs itself ({' <- '.join((*before, name))}); let one of them need nothing"
            )
        row = self.rows[name]
        needed = row.get("adjust") or row.get("init")
        if needed is None:
            return self._varied(self._single(name, dataset, protocol, further))
        if needed not in self.rows or "vary" in self.rows[needed]:
            fitting = [other for other, values in self.rows.items() if "vary" not in values]
            raise self._error(f"row '{name}': {unknown('row to start from', needed, fitting)}")
        (first,) = self._of_row(needed, dataset, protocol, [], (*before, name))
        if "adjust" in row:
            return [self._adjusted(name, first)]
        return self._varied(replace(self._single(name, dataset, protocol, further), needs=first))

    def _single(self, name: str, dataset: str, protocol: str, further: list[str]) -> PlannedRun:
        row, data = self.rows[name], self.datasets[dataset]
        presets, settings = list[str](), list[str]()
        shared = [self.protocols[protocol], data, self._on(data, protocol, f"dataset '{dataset}'")]
        own = [row, self._on(row, dataset, f"row '{name}'"), self._on(row, protocol, f"row '{name}'")]
        if row.get("plain"):
            shared = [_about_data(part) for part in shared]
        for part in [*shared, *own, {"set": further}]:
            presets += part.get("presets", [])
            settings += part.get("set", [])
        if "method" not in row:
            raise self._error(f"row '{name}' has no method; add method = \"...\", or adjust = the row that it adjusts")
        return PlannedRun(
            dataset=dataset,
            data=data.get("data", dataset),
            protocol=protocol,
            row=name,
            method=row["method"],
            seed=0,
            title=row.get("title", ""),
            variant=row.get("variant"),
            presets=tuple(presets),
            settings=tuple(settings),
            options=("--save-weights",) if row.get("save_weights") else (),
            device=row.get("device", data.get("device", "auto")),
            threads=row.get("threads", data.get("threads")),
            market=tuple(sorted(data["simulate"].items())) if "simulate" in data else None,
        )

    def _varied(self, run: PlannedRun) -> list[PlannedRun]:
        vary = self.rows[run.row].get("vary")
        if vary is None:
            return [run]
        short = vary["key"].rpartition(".")[2]
        return [
            replace(
                run,
                row=f"{run.row}-{value}",
                variant=f"{run.variant or short}-{value}",
                settings=(*run.settings, f"{vary['key']}={value}"),
                title=f"{run.title} {value}".strip(),
                group=run.row,
                value=value,
            )
            for value in map(_as_text, vary["values"])
        ]

    def _values_of_rows(self) -> dict[str, str]:
        """The name of every value of a row that varies something -> that row."""
        return {
            f"{name}-{value}": name
            for name, row in self.rows.items()
            for value in map(_as_text, row.get("vary", {}).get("values", []))
        }

    def _adjusted(self, name: str, first: PlannedRun) -> PlannedRun:
        row = self.rows[name]
        given = [(f"--{option}", row[option]) for option in ("form", "keep") if option in row]
        return PlannedRun(
            dataset=first.dataset,
            data=first.data,
            protocol=first.protocol,
            row=name,
            method=first.method,
            seed=0,
            kind="adjust",
            title=row.get("title", ""),
            variant=row.get("variant", f"{first.variant}-adjusted" if first.variant else "adjusted"),
            options=tuple(text for pair in given for text in pair),
            device=first.device,
            needs=first,
            market=first.market,
        )

    # ---------------------------------------------------------------- checks

    def _error(self, text: str) -> ConfigError:
        return ConfigError(f"plan {self.path}: {text}")

    def _in(self, where: str, check: Callable[..., object], *given: object) -> None:
        """What is wrong there is said with the place."""
        try:
            check(*given)
        except ConfigError as error:
            raise self._error(f"{where}: {error}") from error

    def _tables(self, kind: str, known: Mapping[str, type]) -> dict[str, dict[str, Any]]:
        return {
            name: self._checked(values, known, f"[{kind}.{name}]") for name, values in self.top.get(kind, {}).items()
        }

    def _checked(self, values: Any, known: Mapping[str, type], where: str) -> dict[str, Any]:
        if not isinstance(values, dict):
            raise self._error(f"{where} is {described(values)}; it must be a table")
        for key, value in values.items():
            if key not in known:
                raise self._error(f"{where} has '{key}'; known: {', '.join(known)}{suggestion(key, known)}")
            if not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
                more = ", write [[sections.NAME.grids]] with two brackets" if key == "grids" else ""
                raise self._error(f"{key} in {where} is {described(value)}; it must be {_WORDS[known[key]]}{more}")
        for key in ("presets", "set"):
            for text in values.get(key, []):
                if not isinstance(text, str):
                    raise self._error(f'{key} in {where} holds {described(text)}; it must be text, such as "movie"')
        return values

    def _on(self, values: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
        found = values.get("on", {}).get(name, {})
        return self._checked(found, _ON, f"on.{name} of {where}")

    def _check_rows(self) -> None:
        """Nothing that a row says is passed over in silence."""
        for name, row in self.rows.items():
            where = f"[rows.{name}]"
            useless = [key for key in row if key not in _ADJUSTING] if "adjust" in row else [*(_OF_ADJUSTING & {*row})]
            if useless and "adjust" in row:
                takes = ", ".join(sorted(_ADJUSTING))
                raise self._error(f"{where} adjusts another row, and '{useless[0]}' is that row's; it takes {takes}")
            if useless:
                raise self._error(f"{where} has '{useless[0]}', which is for rows with adjust; leave it out")
            if "vary" in row:
                self._check_vary(row["vary"], f"vary of row '{name}'")
        for name, section in self.sections.items():
            rows = [row for grid in section.get("grids", []) if isinstance(grid, dict) for row in grid.get("rows", [])]
            adjusted = next((row for row in rows if "adjust" in self.rows.get(str(row), {})), None)
            if section.get("set") and adjusted is not None:
                raise self._error(
                    f"section '{name}' has set, and its row '{adjusted}' adjusts a run that is made without it; give "
                    f"the settings to the row that it adjusts"
                )

    def _check_vary(self, vary: Any, where: str) -> None:
        vary = self._checked(vary, _VARY, where)
        if "key" not in vary or not vary.get("values"):
            raise self._error(f'{where} lacks its key or its values; write vary = {{ key = "...", values = [...] }}')
        for value in vary["values"]:
            if not isinstance(value, str | int | float):
                raise self._error(f"{where} has the value {described(value)}; give text, numbers, true or false")

    def _check_names(self) -> None:
        """A word of `--only` means one thing."""
        seen: dict[str, str] = {}
        for kind, name in self._names():
            self._check_name(kind, name)
            if name in seen:
                raise self._error(f"'{name}' is a {seen[name]} and a {kind}; rename one of them")
            seen[name] = kind
        for name in self.protocols:
            if name not in PROTOCOLS:
                raise self._error(unknown("protocol", name, PROTOCOLS))
        known = {"datasets": [*self.protocols], "rows": [*self.datasets, *self.protocols]}
        for kind, names in known.items():
            for name, values in getattr(self, kind).items():
                for other in values.get("on", {}):
                    if other not in names:
                        raise self._error(f"[{kind}.{name}.on] {unknown('name', other, names)}")
        for name, dataset in self.datasets.items():
            if "data" in dataset and "simulate" in dataset:
                raise self._error(f"[datasets.{name}] has data and simulate; leave one of them out")
            if dataset.get("data") == "":
                raise self._error(f"[datasets.{name}] has data = ''; name a dataset, a file or a folder")

    def _names(self) -> Iterator[tuple[str, str]]:
        kinds: dict[str, Mapping[str, Any]] = {"dataset": self.datasets, "protocol": self.protocols}
        kinds |= {"section": self.sections, "row": self.rows}
        for kind, names in [*kinds.items(), ("row", self._values_of_rows())]:
            yield from ((kind, name) for name in names)

    def _check_name(self, kind: str, name: str) -> None:
        """Folders are called after it."""
        if not _NAME.fullmatch(name):
            raise self._error(
                f"the name of {kind} {described(name)} becomes that of a folder; use letters, digits and . _ + -, with "
                "a letter or a digit first"
            )

    def _check_values(self) -> None:
        """Of what every run of a dataset or of a row has."""
        for kind in ("datasets", "rows"):
            for name, values in getattr(self, kind).items():
                where = f"[{kind}.{name}]"
                self._in(where, choice, "device", values.get("device", "auto"), _DEVICES)
                self._in(where, at_least_one, "threads", values.get("threads", 1))
                if "variant" in values:
                    self._check_name("variant", values["variant"])
        for name, dataset in self.datasets.items():
            if "simulate" in dataset:
                self._in(f"[datasets.{name}]", build, MarketConfig, dataset["simulate"], "simulate")

    def _check_places(self, runs: list[PlannedRun]) -> None:
        """No two runs write the same record or the same folder."""
        for kind in ("place", "name"):
            seen: dict[Any, PlannedRun] = {}
            for run in runs:
                place = getattr(run, kind)
                if place in seen:
                    raise self._error(
                        f"rows '{seen[place].row}' and '{run.row}' both write {place}, but differ in their settings; "
                        f"give one of them another variant, or the same settings in every section"
                    )
                seen[place] = run


def _about_data(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of settings, those of the data and of how it is judged."""
    return {"set": [text for text in values.get("set", []) if text.startswith(("data.", "eval."))]}


def _as_text(value: str | float) -> str:
    """As --set takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _with_seed(run: PlannedRun, seed: int) -> PlannedRun:
    return replace(run, seed=seed, needs=None if run.needs is None else _with_seed(run.needs, seed))
