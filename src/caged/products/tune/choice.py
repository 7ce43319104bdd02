"""What a search found: the setting of each method, the winner, the front; all of it on validation."""

from __future__ import annotations

from dataclasses import dataclass

from caged.evaluation.metrics import MetricKey, list_ks
from caged.products.tune.journal import Trial
from caged.products.tune.objective import Goal, front
from caged.products.tune.search import Search


@dataclass(frozen=True, eq=False)
class Chosen:
    """Of one method."""

    method: str
    default: Trial
    trial: Trial | None  # None: every trial failed
    feasible: bool
    counted: tuple[Trial, ...]
    exhausted: bool  # there was nothing left to try

    @property
    def epochs(self) -> int:
        return sum(trial.epochs for trial in self.counted)

    @property
    def seconds(self) -> float:
        return sum(trial.seconds for trial in self.counted)

    @property
    def failed(self) -> int:
        return sum(trial.status == "failed" for trial in self.counted)

    @property
    def pruned(self) -> int:
        return sum(trial.status == "pruned" for trial in self.counted)

    @property
    def saved(self) -> int:
        """Epochs, at most, that pruning spared."""
        return sum(trial.saved for trial in self.counted)


@dataclass(frozen=True, eq=False)
class Choice:
    goal: Goal
    rounds: int  # whole ones, which count
    dropped: int  # trials of a round that not every method finished
    methods: tuple[Chosen, ...]
    front: tuple[Trial, ...]

    @property
    def keys(self) -> list[str]:
        """What is told of every setting: the objective, what it is held to, accuracy and niche recall."""
        wished = [self.goal.objective.key, *(limit.key for limit in self.goal.limits)]
        return list(dict.fromkeys([*wished, *(self.trade_off or ())]))

    @property
    def trade_off(self) -> tuple[str, str] | None:
        """Accuracy and niche recall, at the k of the objective where it has one; None where they were not measured."""
        known = next((trial.metrics for one in self.methods for trial in one.counted if trial.metrics), {})
        ks = [MetricKey.parse(self.goal.objective.key).k, *list_ks(MetricKey.parse(key) for key in known)]
        pairs = [(f"recall@{k}", f"recall@{k}/niche") for k in ks]
        return next((pair for pair in pairs if all(key in known for key in pair)), None)

    @property
    def ranked(self) -> list[Chosen]:
        """Who can win, the winner first: of equals, who was named first."""
        able = [chosen for chosen in self.methods if chosen.trial is not None and chosen.feasible]
        return sorted(able, key=lambda chosen: self.goal.order(_metrics(chosen.trial)), reverse=True)


def choose(search: Search) -> Choice | None:
    """None where not even the first round is whole."""
    methods = search.settings.methods
    if any(method not in search.journal.frozen for method in search.settings.references):
        return None
    rounds = min(search.made(method) for method in methods)
    if rounds == 0:
        return None
    goal = search.goal()
    found = tuple(_chosen(search, method, goal, rounds) for method in methods)
    counted = [trial for chosen in found for trial in chosen.counted if trial.metrics is not None]
    best = front([_metrics(trial) or {} for trial in counted], goal.axes())
    ended = sum(trial.ended for trial in search.journal.trials.values())
    dropped = ended - sum(len(chosen.counted) for chosen in found)
    return Choice(goal, rounds, dropped, found, tuple(counted[place] for place in best))


def _chosen(search: Search, method: str, goal: Goal, rounds: int) -> Chosen:
    counted = tuple(trial for trial in search.journal.of(method) if trial.number < rounds and trial.ended)
    done = [trial for trial in counted if trial.metrics is not None]
    best = max(done, key=lambda trial: goal.order(_metrics(trial)), default=None)  # of equals the first
    feasible = best is not None and goal.feasible(_metrics(best) or {})
    return Chosen(method, counted[0], best, feasible, counted, search.exhausted(method, rounds))


def _metrics(trial: Trial | None) -> dict[str, float | None] | None:
    return None if trial is None else trial.metrics
