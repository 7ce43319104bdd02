"""The final trainings of a search: which there are, and what is kept of them.

What a test said goes into the journal, and the values of each user that the answer needs into `users/`. Both are small,
and a search goes on with them on another machine; the run folders are only there to be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq

from caged.evaluation.metrics import MetricKey
from caged.evaluation.pooled_difference import pooled
from caged.evaluation.stored import write_user_table
from caged.files import read_sealed_json, replacing
from caged.models import registered
from caged.products.tune.choice import Choice, Chosen
from caged.products.tune.journal import Final, Setting
from caged.products.tune.search import Search
from caged.products.tune.settings import Settings
from caged.runs.folder import METRICS, PER_USER, SUMS, Run, RunFolder
from caged.runs.spec import ExperimentSpec

RUNS, USERS = "runs", "users"


@dataclass(frozen=True)
class FinalRun:
    """A training of what was chosen, or of the defaults."""

    seed: int
    folder: Path  # need not be on this machine
    metrics: dict[str, float | None] | None  # of the test part
    reason: str | None = None  # why there are none
    epochs: int = 0
    seconds: float = 0.0
    users: Path | None = None  # the folder of what is kept of each user

    def value(self, key: str) -> float | None:
        return None if self.metrics is None else self.metrics.get(key)


@dataclass(frozen=True)
class Finals:
    """What is tested so far, by method."""

    tuned: Mapping[str, list[FinalRun]] = field(default_factory=dict)
    default: Mapping[str, list[FinalRun]] = field(default_factory=dict)  # empty where nobody asked for it
    left: int = 0  # trainings that are still to be made


def tests_of(search: Search, choice: Choice) -> Finals:
    """As the journal tells them, methods in the order of the search."""
    if not search.journal.closed:
        return Finals()
    found: dict[Setting, dict[str, list[FinalRun]]] = {"tuned": {}, "default": {}}
    for final in _planned(search, choice):
        method, setting, _ = final
        if final in search.journal.tested:
            found[setting].setdefault(method, []).append(_final_run(search, final))
    if search.journal.test_defaults:  # where the defaults were chosen, one test is both
        same = [one.method for one in choice.methods if _are_defaults(one) and one.method in found["tuned"]]
        found["default"] |= {method: found["tuned"][method] for method in same}
    return Finals(found["tuned"], found["default"], len(untested(search, choice)))


def _final_run(search: Search, final: Final) -> FinalRun:
    told = search.journal.tested[final]
    return FinalRun(
        seed=final[2],
        folder=run_folder(search, final),
        metrics=told.get("metrics"),
        reason=told.get("reason"),
        epochs=told["epochs"],
        seconds=told["seconds"],
        users=search.folder / USERS / users_name(final),
    )


# ---------------------------------------------------------------- which trainings


def untested(search: Search, choice: Choice) -> list[Final]:
    """Seed by seed, so that a search that is cut short has tested the methods alike."""
    return [final for final in _planned(search, choice) if final not in search.journal.tested]


def _planned(search: Search, choice: Choice) -> Iterator[Final]:
    for place in range(search.settings.seeds):
        for chosen in choice.methods:
            seeds = _seeds(search.settings, chosen)
            if chosen.trial is None or place >= len(seeds):
                continue
            yield chosen.method, "tuned", seeds[place]
            if search.journal.test_defaults and not _are_defaults(chosen):
                yield chosen.method, "default", seeds[place]


def _are_defaults(chosen: Chosen) -> bool:
    return chosen.trial is not None and chosen.trial.number == 0


def _seeds(settings: Settings, chosen: Chosen) -> range:
    """A closed form draws nothing: one training says it all."""
    spec = settings.spec(chosen.method, chosen.default.values)
    trained = bool(registered(spec.method).method(spec.config).stages())
    return range(settings.seed, settings.seed + (settings.seeds if trained else 1))


def final_spec(search: Search, choice: Choice, final: Final) -> ExperimentSpec:
    """Also measured at the cut-offs of what was wished for; the first one decides the epoch, as in the trials."""
    method, setting, seed = final
    chosen = next(one for one in choice.methods if one.method == method)
    trial = chosen.default if setting == "default" else chosen.trial
    assert trial is not None
    spec = search.settings.spec(method, trial.values, seed=seed)
    first = search.given.data.k
    missing = [k for k in search.given.ks if k not in (first, *spec.eval.k)]
    if not missing:
        return spec
    own = spec.eval.k if spec.eval.k[0] == first else (first,)  # a small catalogue has shorter lists
    return replace(spec, eval=replace(spec.eval, k=(*own, *missing)))


def users_name(final: Final) -> str:
    """Of the folder of what is kept of each user, and of that of the run."""
    method, setting, seed = final
    return f"{method}-seed{seed}" if setting == "tuned" else f"{method}-default-seed{seed}"


# ---------------------------------------------------------------- what is kept


def run_folder(search: Search, final: Final) -> Path:
    return search.folder / RUNS / users_name(final)


def keep_test(search: Search, choice: Choice, final: Final) -> None:
    """What the finished run of a final training said."""
    folder = run_folder(search, final)
    metrics = read_sealed_json(folder / METRICS)["metrics"]
    keys = [MetricKey.parse(key) for key in choice.keys if key in metrics]
    keep_users(folder, search.folder / USERS / users_name(final), keys)
    run = RunFolder.read(folder).run
    epochs = (run.training or {}).get("epochs", 0)
    _write(search, final, metrics=metrics, epochs=epochs, seconds=seconds_of(run))


def seconds_of(run: Run) -> float:
    return run.seconds["total"]


def keep_failure(search: Search, final: Final, reason: str) -> None:
    _write(search, final, reason=reason, epochs=0, seconds=0.0)


def _write(search: Search, final: Final, **told: object) -> None:
    method, setting, seed = final
    search.journal.write("tested", method=method, setting=setting, seed=seed, **told)


def keep_users(run: Path, target: Path, keys: Sequence[MetricKey]) -> None:
    """Of the tables per user, the columns that differences in these keys need."""
    target.mkdir(parents=True, exist_ok=True)
    stored = pq.read_schema(run / PER_USER).names
    wanted = ["user_id", "user_group", *dict.fromkeys(key.of_each_user for key in keys)]
    tables = {PER_USER: pq.read_table(run / PER_USER, columns=[name for name in wanted if name in stored])}
    if pooled(keys):
        tables[SUMS] = pq.read_table(run / SUMS)
    for name, table in tables.items():
        with replacing(target / name) as temporary:
            write_user_table(table, temporary)
