"""From a scorer to numbers: `evaluate` for a finished model, `make_validator` for the training loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from caged.columns import WHOLE, Columns
from caged.data.interactions import Interactions
from caged.data.seen import Seen
from caged.data.shown import ShownAtRandom
from caged.data.some_users import of_users, sampled_users
from caged.errors import DataError
from caged.evaluation.groups import Groups
from caged.evaluation.lists import Lists, check_k
from caged.evaluation.measure import Report, measure
from caged.evaluation.metrics import MetricKey, list_ks, list_width
from caged.evaluation.outcome import Evaluation
from caged.evaluation.pair_scores import pair_scores
from caged.evaluation.reference import Reference
from caged.evaluation.topk import Ranker, ScoreFunction, top_k

__all__ = ["Evaluation", "Reference", "Report", "evaluate", "make_validator", "measure"]


def evaluate(
    scorer: ScoreFunction,
    *,
    train: Interactions,
    valid: Interactions | None,
    relevant: Interactions,
    ks: Sequence[int] = (20,),
    list_length: int = 100,
    metrics: Sequence[str] | None = None,
    groups: Groups | None = None,
    shown: ShownAtRandom | None = None,
    device: torch.device | str = "cpu",
    columns: Columns = WHOLE,
) -> Evaluation:
    """Rank the whole catalogue for the users with a relevant item and measure the lists.

    The pairs of `train` and, where given, of `valid` are masked: give `valid` when `relevant` is the test part. The
    lists have `list_length` places, or as many as the metrics need, or the whole catalogue where it is smaller.
    `metrics` restricts the report to these keys, as in `measure`. `groups` of `train` take the place of the usual ones.
    Of what was `shown` at random only these pairs are scored. The other ranks of `columns` help with `rank_along`.
    """
    reference = Reference(train, valid, relevant, groups, shown)
    _check_not_empty(relevant, "evaluated")
    keys = None if metrics is None else [MetricKey.parse(text) for text in metrics]
    wanted = list(ks) if keys is None else list_ks(keys)
    for k in wanted:
        check_k(k, reference.item_count)
    lists = top_k(
        scorer,
        reference.relevant_users,
        columns.told(lambda: max([list_length, *wanted])),
        seen=reference.seen,
        device=device,
        columns=columns,
    )
    candidates = reference.candidates
    scores = None if candidates is None else pair_scores(scorer, candidates.owners, candidates.items, device=device)
    return Evaluation(measure(lists, reference, ks, metrics=keys, scores=scores), reference, lists)


def rank_along(
    scorer: ScoreFunction,
    *,
    train: Interactions,
    valid: Interactions | None,
    relevant: Interactions,
    device: torch.device | str,
    columns: Columns,
) -> None:
    """What all ranks but the first do while it is in `evaluate`: rank for their share of the users."""
    reference = Reference(train, valid, relevant)
    length = columns.told(lambda: 0)  # the first rank knows
    top_k(scorer, reference.relevant_users, length, seen=reference.seen, device=device, columns=columns)


def make_validator(
    train: Interactions,
    valid: Interactions,
    device: torch.device | str = "cpu",
    k: int = 20,
    metrics: Sequence[str] | None = None,
    groups: Groups | None = None,
    shown: ShownAtRandom | None = None,
    users: int | None = None,
    columns: Columns = WHOLE,
) -> Callable[[ScoreFunction], dict[str, float]]:
    """The `validate` callable of the training loop: a scorer in, the metrics on `valid` out, train masked.

    `metrics` are the keys to compute, by default recall and ndcg at `k`; `groups` and `shown` are those of `evaluate`.
    With `users`, it is so many of those with validation items, a random sample; each still ranks the whole catalogue.
    Everything that does not depend on the scores is prepared here, once. All ranks of `columns` call it and get what
    the first of them measures.
    """
    _check_not_empty(valid, "validation")
    sample = sampled_users(valid, users)
    reference = Reference(train, None, valid if sample is None else of_users(valid, sample), groups, shown)
    keys = [MetricKey.parse(name) for name in ((f"recall@{k}", f"ndcg@{k}") if metrics is None else metrics)]
    for wanted in list_ks(keys):
        check_k(wanted, reference.item_count)
    candidates = reference.candidates
    seen = reference.seen if sample is None else Seen(of_users(train, sample))  # no more than is asked for
    rank = Ranker(reference.relevant_users, list_width(keys), seen=seen, device=device, columns=columns)

    def validate(scorer: ScoreFunction) -> dict[str, float]:
        lists = rank(scorer)
        return columns.told(lambda: measured(scorer, lists))

    def measured(scorer: ScoreFunction, lists: Lists) -> dict[str, float]:
        scores = None if candidates is None else pair_scores(scorer, candidates.owners, candidates.items, device=device)
        return measure(lists, reference, metrics=keys, scores=scores).metrics

    return validate


def _check_not_empty(part: Interactions, name: str) -> None:
    if len(part) == 0:
        raise DataError(
            f"the {name} part has no interactions, so no accuracy can be measured; split the data so that it gets some"
        )
