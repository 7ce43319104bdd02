"""A trained model on a test part: what `caged evaluate` measures, for `Recommender.evaluate`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from caged.data import Interactions, Split
from caged.data.matching import check_kinds
from caged.data.seen import Seen
from caged.errors import ConfigError, DataError
from caged.evaluation.bootstrap import Interval
from caged.evaluation.evaluate import Evaluation, evaluate
from caged.evaluation.evidence import Evidence
from caged.evaluation.groups import Grouping
from caged.evaluation.intervals import found_intervals
from caged.evaluation.lists import USUAL_K, check_k, usual_k
from caged.runs.artefact import Artefact
from caged.runs.fit_inputs import log_given
from caged.runs.protocols import protocol_named
from caged.runs.spec import EvalConfig

logger = logging.getLogger("caged")


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Metrics by key, such as `recall@20` and `recall@20/niche`; an undefined value is NaN.

    `protocol` and `evidence` say how the model was chosen and what the test part rests on.
    """

    evaluation: Evaluation
    name: str
    protocol: str
    evidence: Evidence

    @property
    def metrics(self) -> dict[str, float]:
        return self.evaluation.report.metrics

    @property
    def users(self) -> dict[str, int]:
        """How many users are behind each key."""
        return self.evaluation.report.users_per_metric

    @property
    def counts(self) -> dict[str, int]:
        return self.evaluation.report.counts

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """95% intervals over the choice of users; a key that has none is absent, and `withheld` may say why."""
        return {key: one for key, one in self._found.items() if isinstance(one, Interval)}

    @cached_property
    def withheld(self) -> dict[str, str]:
        """Why a key that could have an interval has none."""
        return {key: one for key, one in self._found.items() if isinstance(one, str)}

    @property
    def per_user(self) -> pa.Table:
        """`user_id`, `user_group` and a column per metric that each user has a value of."""
        return self.evaluation.per_user

    @property
    def recommendations(self) -> pa.Table:
        """The lists behind the numbers: `user_id, item_id, score, rank`; `caged.audit` takes them."""
        return self.evaluation.recommendations

    def table(self) -> pa.Table:
        """`metric, value, low, high, users`, a row per key."""
        found = [self.intervals.get(key) for key in self.metrics]
        return pa.table(
            {
                "metric": list(self.metrics),
                "value": pa.array(self.metrics.values(), type=pa.float64()),
                "low": pa.array([None if one is None else one.low for one in found], type=pa.float64()),
                "high": pa.array([None if one is None else one.high for one in found], type=pa.float64()),
                "users": [self.users[key] for key in self.metrics],
            }
        )

    def __repr__(self) -> str:
        first, value = next(iter(self.metrics.items()))
        about = f"protocol {self.protocol}, test: {self.evidence}"
        return f"<{self.name} evaluated, {about}: {first} {value:.4f}, {len(self.metrics)} metrics>"

    @cached_property
    def _found(self) -> dict[str, Interval | str]:
        return found_intervals(self.evaluation.report)


def evaluate_model(
    fitted: Artefact, test: Any, k: int | Sequence[int], *, protocol: str, evidence: Evidence, chosen: Grouping
) -> Evaluated:
    """Rank the catalogue for the users of the test part, without what they had in train and validation."""
    seen, relevant = _measured_against(fitted, test)
    groups = chosen.of(seen.train)
    for note in groups.notes:
        logger.warning("%s", note)
    ks = _cut_offs(k, fitted.train.item_count)
    length = EvalConfig().list_length
    evaluation = evaluate(
        fitted.scorer(),
        train=seen.train,
        valid=seen.valid,
        relevant=relevant,
        ks=ks,
        list_length=length,
        metrics=protocol_named(protocol).metrics(ks, length, groups.names),
        groups=groups,
        device=fitted.device,
    )
    return Evaluated(evaluation, fitted.name, protocol, evidence)


def _measured_against(fitted: Artefact, test: Any) -> tuple[Seen, Interactions]:
    """What was seen before and what is relevant, in the rows of the model."""
    if not isinstance(test, Split):
        return fitted.seen, _in_rows_of(fitted.train, log_given("test", test))
    if test.test is None:
        raise DataError("this split has no test part; give one that has, or the test interactions themselves")
    if Seen(test.train, test.valid).fingerprint != fitted.seen.fingerprint:
        raise DataError(
            "this model was trained on other interactions than the train and validation parts of this split; give the "
            "split that it was fitted to, or test interactions alone"
        )
    parts = [None if part is None else _in_rows_of(fitted.train, part) for part in (test.train, test.valid, test.test)]
    train, valid, relevant = parts
    assert train is not None
    assert relevant is not None
    return Seen(train, valid), relevant


def _in_rows_of(train: Interactions, part: Interactions) -> Interactions:
    """The pairs that the model can list at all; how many it cannot is told."""
    check_kinds(train, {"test": part})
    known_users = train.user_ids.rows(part.user_ids.values)[part.users] >= 0
    known = known_users & (train.item_ids.rows(part.item_ids.values)[part.items] >= 0)
    left_out = int(np.count_nonzero(~known))
    if left_out == len(part):
        raise DataError("the model knows no pair of a user and an item of test; do both use the same ids?")
    if left_out:
        logger.warning(
            "%d of the %d pairs of test (%.1f%%) name users or items that the model does not know: left out",
            *(left_out, len(part), 100 * left_out / len(part)),
        )
    return part.select(known).reindexed(train.user_ids, train.item_ids)


def _cut_offs(k: int | Sequence[int], items: int) -> tuple[int, ...]:
    if isinstance(k, int) and k == USUAL_K and items < USUAL_K:
        logger.warning("there are %d items, so lists are cut at k=%d instead of %d", items, usual_k(items), USUAL_K)
        return (usual_k(items),)
    several = k if isinstance(k, list | tuple | np.ndarray) else (k,)
    if len(several) == 0:
        raise ConfigError("k is empty; give at least one cut-off")
    return EvalConfig(k=tuple(check_k(one, items) for one in several)).k
