"""The trials of a search that has ended, judged by another goal, as a search folder of its own.

The epoch of a trial is chosen by recall whatever the objective is, so the metrics of a trial do not depend on the goal;
only which settings were proposed does, and the answer says so. What the new goal chooses and the old search has tested
is not tested again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from caged.errors import ConfigError, RunError
from caged.evaluation.metrics import MetricKey, with_sums
from caged.evaluation.pooled_difference import pooled
from caged.files import new_folder
from caged.products.tune.answer import Answer, write_answer
from caged.products.tune.choice import Choice, choose
from caged.products.tune.finals import USERS, FinalRun, keep_users, tests_of, users_name
from caged.products.tune.finish import write_presets
from caged.products.tune.journal import FILE, KILLED, Final, Journal, Trial
from caged.products.tune.objective import USUAL, Constraint, Objective
from caged.products.tune.run import told_tune
from caged.products.tune.search import Search
from caged.products.tune.settings import Settings
from caged.runs.folder import PER_USER, SUMS, now
from caged.runs.versions import versions


def judge_again(
    source: Path,
    folder: Path,
    objective: Objective | None = None,
    constraints: Sequence[Constraint] = (),
    *,
    command: str = "",
) -> Answer:
    """Write `folder`, which is shown and gone on with like any search; nothing is trained. `command` goes into the
    record."""
    old = Search.told(source)
    before = choose(old)
    if before is None or not (old.journal.closed or old.complete):
        raise RunError(
            f"the search in {source} has not ended; end it first with: caged tune --resume {source} (with --finish it "
            "makes no further trial)"
        )
    settings = replace(old.settings, objective=objective or USUAL, constraints=tuple(constraints))
    _check_references(settings, source)
    _check_measured(settings, before, source)
    judged = _judged(old, settings, before.rounds)
    after = choose(judged)  # before anything is written: a constraint may mean nothing
    assert after is not None
    with new_folder(folder) as temporary:
        journal = Journal(temporary / FILE)
        _write_search(journal, judged, after.rounds)
        journal.write("call", **_described(old, command))
        for final, run in _tests_known(old, before, after):
            if _take_users(run, temporary / USERS / users_name(final), after.keys, before.keys):
                _write_test(journal, final, run)
    write_presets(Search.told(folder), after)  # they name the folder, so it has to be there
    answer = told_tune(folder)
    write_answer(answer)
    return answer


def _check_references(settings: Settings, source: Path) -> None:
    for name in settings.references:
        if name not in settings.methods:
            raise ConfigError(
                f"--subject-to names {name}, which was not searched in {source}; choose one of "
                f"{', '.join(settings.methods)}"
            )


def _check_measured(settings: Settings, before: Choice, source: Path) -> None:
    counted = [trial for chosen in before.methods for trial in chosen.counted]
    known = next((trial.metrics for trial in counted if trial.metrics is not None), None)
    if known is None:
        raise RunError(f"no trial in {source} succeeded, so there is nothing to judge; see {FILE} for the reasons")
    for key in settings.wished_keys:
        if key not in known:
            raise ConfigError(
                f"the trials in {source} were not measured in {key}; choose one of {', '.join(sorted(known))}"
            )


# ---------------------------------------------------------------- the new journal


def _judged(old: Search, settings: Settings, rounds: int) -> Search:
    """In memory: what the old journal says, under the new goal."""
    first = old.journal.made_for or old.settings.goal_in_words
    made_for = None if first == settings.goal_in_words else first
    # A reference of the old goal may have made more trials than count, and the others were held to the best of all.
    frozen = {method: old.journal.frozen.get(method, rounds) for method in settings.references}
    return Search(old.folder, settings, replace(old.journal, frozen=frozen, made_for=made_for), None)


def _write_search(journal: Journal, judged: Search, rounds: int) -> None:
    """All but the tests."""
    known = judged.journal
    told = {} if known.made_for is None else {"made_for": known.made_for}
    journal.write("begin", settings=judged.settings.to_json(), data=known.data, **told)
    for call in known.calls:
        journal.write("call", **call)
    for trial in known.trials.values():
        if trial.ended:
            _write_trial(journal, trial)
    for method, trials in known.frozen.items():
        journal.write("frozen", method=method, trials=trials)
    journal.write("closed", rounds=rounds)
    if known.test_defaults:
        journal.write("test_defaults")


def _write_trial(journal: Journal, trial: Trial) -> None:
    whose = {"method": trial.method, "trial": trial.number}
    for _ in range(trial.kills):
        journal.write("start", **whose, values=trial.values)
        journal.write("lost", **whose, why=KILLED)
    journal.write("start", **whose, values=trial.values)
    told = {key: value for key, value in vars(trial).items() if key not in ("method", "number", "values", "kills")}
    journal.write("end", **whose, **told)


def _described(old: Search, command: str) -> dict[str, Any]:
    """Without a machine: nothing is trained on it."""
    dataset = next((call["dataset"] for call in old.journal.calls), old.settings.source)
    return {"command": command, "dataset": dataset, "started": now(), "versions": versions()}


# ---------------------------------------------------------------- what is tested already


def _tests_known(old: Search, before: Choice, after: Choice) -> Iterator[tuple[Final, FinalRun]]:
    """Of the settings that are chosen now."""
    known = _tests_by_trial(old, before)
    for chosen in after.methods:
        if chosen.trial is None:
            continue
        method, number = chosen.method, chosen.trial.number
        for run in known.get((method, number), []):
            yield (method, "tuned", run.seed), run
        if old.journal.test_defaults and number != 0:
            for run in known.get((method, 0), []):
                yield (method, "default", run.seed), run


def _tests_by_trial(old: Search, before: Choice) -> dict[tuple[str, int], list[FinalRun]]:
    """By method and number: trial 0 are the defaults, whether they were chosen or only tested beside what was."""
    tests, found = tests_of(old, before), dict[tuple[str, int], list[FinalRun]]()
    for chosen in before.methods:
        found[chosen.method, 0] = list(tests.default.get(chosen.method, []))
        if chosen.trial is not None:
            found[chosen.method, chosen.trial.number] = list(tests.tuned.get(chosen.method, []))
    return found


def _take_users(run: FinalRun, target: Path, keys: Sequence[str], kept: Sequence[str]) -> bool:
    """What the new answer needs of each user; whether the test has all that. The old search kept what its own keys
    need; the folder of the run has the rest, where it is on this machine."""
    if run.metrics is None:  # a training that failed has no users
        return True
    if not set(keys) <= {*run.metrics, *kept}:
        return False
    wanted = [MetricKey.parse(key) for key in keys]
    if all(key in kept for key in with_sums(wanted)):  # others, such as gini, are of the lists of all together
        if run.users is not None and run.users.is_dir():
            shutil.copytree(run.users, target)
        return True
    if not all((run.folder / name).is_file() for name in (PER_USER, *([SUMS] if pooled(wanted) else []))):
        return False
    keep_users(run.folder, target, wanted)
    return True


def _write_test(journal: Journal, final: Final, run: FinalRun) -> None:
    method, setting, seed = final
    told = {"reason": run.reason} if run.metrics is None else {"metrics": run.metrics}
    journal.write("tested", method=method, setting=setting, seed=seed, **told, epochs=run.epochs, seconds=run.seconds)
