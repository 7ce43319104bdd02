"""Which setting a trial gets: the defaults first, then a small grid to its end, else what Optuna proposes.

A proposal depends on the seed of the search, the number of the trial, the settings before it and those results that it
may know (`turns.known_to`), and on nothing else: a search that was killed, or that has more workers, proposes the same.
Optuna keeps nothing; it is handed the record each time.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from caged.config import Range
from caged.errors import ConfigError
from caged.products.tune.space import Space, Values, grid, grid_size, within
from caged.seeding import derive, numpy_generator

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

DRAWS = 20  # proposals that were tried already, before one is taken at random
DIGITS = 4  # significant digits of a drawn number: more would only be harder to write down


def check_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"tuning needs Optuna ({error}); pip install 'caged-rec[tune]'") from error
    logging.getLogger("optuna").setLevel(logging.WARNING)


def small_grid(space: Space, defaults: Values, trials: int, seed: int) -> list[Values] | None:
    """The defaults and every other setting, in a drawn order; None where there are more than `trials`."""
    if grid_size(space) > trials:
        return None
    others = [values for values in grid(space) or [] if values != defaults]
    if len(others) + 1 > trials:
        return None
    order = numpy_generator(seed, "grid").permutation(len(others))
    return [defaults, *(others[place] for place in order)]


def propose(
    space: Space,
    ranked: Sequence[tuple[Values, float]],
    number: int,
    seed: int,
    *,
    pending: Collection[Values] = (),
) -> Values:
    """The setting of trial `number` from what was tried before, each with its place: the higher the better.

    The results of `pending` settings may not be known; they are only not proposed again.
    """
    tried = [*(values for values, _ in ranked), *pending]
    for draw in range(DRAWS):
        values = _asked(space, ranked, derive(seed, f"trial {number} draw {draw}"))
        if values not in tried:
            return values
    untried = [values for values in grid(space) or [] if values not in tried]
    if not untried:
        return values
    return untried[int(numpy_generator(seed, f"trial {number}").integers(len(untried)))]


def _asked(space: Space, ranked: Sequence[tuple[Values, float]], seed: int) -> Values:
    import optuna

    sampler = optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=1)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(before)
    distributions = {name: _distribution(search) for name, search in space.items()}
    for values, place in ranked:
        if within(space, values):
            params = {name: _to_optuna(space[name], value) for name, value in values.items()}
            study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=place))
    asked = study.ask(distributions).params
    return {name: _from_optuna(search, asked[name]) for name, search in space.items()}


def _distribution(search: Any) -> BaseDistribution:
    """Of a list its places are drawn: numbers in their order, so that near ones tell about each other."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(search, Range):
        log = search.scale == "log"
        if search.whole:
            return IntDistribution(int(search.low), int(search.high), log=log)
        return FloatDistribution(search.low, search.high, log=log)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in search)
    if numbers and list(search) == sorted(search):
        return IntDistribution(0, len(search) - 1)
    return CategoricalDistribution(list(range(len(search))))


def _to_optuna(search: Any, value: Any) -> Any:
    return value if isinstance(search, Range) else search.index(value)


def _from_optuna(search: Any, drawn: Any) -> Any:
    if not isinstance(search, Range):
        return search[drawn]
    if search.whole:
        return int(drawn)
    return min(max(float(f"{drawn:.{DIGITS}g}"), search.low), search.high)
