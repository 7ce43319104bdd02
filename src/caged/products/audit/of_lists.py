"""An audit: what the lists of any recommender do to popular and niche items, and to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.parts import NOT_LIKED
from caged.data.popularity import ITEM_GROUPS
from caged.data.readers.columns import Columns
from caged.data.readers.files import DEFAULT_COLUMNS
from caged.data.seen import Seen, find
from caged.data.shown import ShownAtRandom
from caged.errors import ConfigError
from caged.evaluation.basis import Basis
from caged.evaluation.bootstrap import Interval
from caged.evaluation.foreign.collect import collect
from caged.evaluation.foreign.list_columns import ListColumns
from caged.evaluation.foreign.scan import Recommendations, Scan, scan
from caged.evaluation.groups import USUAL as USUAL_GROUPS
from caged.evaluation.groups import Grouping
from caged.evaluation.intervals import found_intervals
from caged.evaluation.lists import Lists, PackedLists
from caged.evaluation.measure import Missing, Report, measure
from caged.evaluation.metrics import LISTED_UNSEEN, MetricKey, keys_of_shown, list_ks, list_width, reported_keys
from caged.evaluation.outcome import Evaluation, Measured
from caged.evaluation.parallel import meanwhile
from caged.evaluation.reference import Reference
from caged.evaluation.shown import listed_scores
from caged.products.audit.evidence import Evidence, checked, said_by_name
from caged.products.audit.examples import examples_of
from caged.products.audit.families import families_of
from caged.products.audit.inputs import AuditInputs, Log, read_inputs
from caged.products.audit.notes import notes_of, problems_of
from caged.products.audit.result import AuditResult, ExampleItem, ExampleUser, Exposure
from caged.progress import ProgressReport, unreported

__all__ = [
    "AuditResult",
    "Evidence",
    "ExampleItem",
    "ExampleUser",
    "Exposure",
    "audit_evaluation",
    "audit_lists",
]

PER_USER_LIMIT = 200_000  # users whose values are kept one by one; above it only sums


@dataclass(frozen=True)
class ListNames:
    """What the columns of lists are called, where not as in the logs."""

    user: str | None = None
    item: str | None = None
    score: str | None = None
    rank: str | None = None

    def beside(self, logs: Columns) -> ListColumns:
        return ListColumns(
            user=logs.user,
            item=logs.item,
            ids=logs.ids,
            list_user=self.user,
            list_item=self.item,
            score=self.score,
            rank=self.rank,
        )


USUAL = ListNames()


def audit_lists(
    recs: Any,
    *,
    train: Log,
    test: Log | None = None,
    valid: Log | None = None,
    test_negative: Log | None = None,
    items: Any = None,
    ks: Sequence[int] = (20,),
    shown_ks: Sequence[int] = (5,),
    shown_half: str = "all",
    missing: Missing = "zero",
    drop_seen: bool = False,
    evidence: Evidence = "natural",
    further_tests: Mapping[str, Log] | None = None,
    name: str | None = None,
    command: str = "",
    columns: Columns = DEFAULT_COLUMNS,
    list_columns: ListNames = USUAL,
    min_rating: float | None = None,
    chosen: Grouping = USUAL_GROUPS,
    progress: ProgressReport = unreported,
) -> AuditResult:
    """Audit lists that somebody else made.

    `recs` is a Parquet, CSV or TSV file or any Arrow frame with user_id, item_id and score or rank. `train`, `valid`
    and `test` are files, frames, `Interactions`, or a split (its folder, the name of a dataset, a `Split`), whose parts
    are then taken. Odd input is treated as docs/metrics.md says, counted in `counts` and told in `notes`. `missing` is
    what a user with relevant items and no list means: accuracy 0, or `skip`. `columns` names the columns of files and
    frames, `list_columns` those of lists that are called otherwise; `min_rating` leaves out interactions of the logs
    that were rated lower. `chosen` says how many items are popular, and which further groups there are.
    that were rated lower. `test_negative` is what was shown at random and not liked, beside `test` with what was liked:
    then the places of these items in the lists are judged too, at `shown_ks`, for one `shown_half` of the users or all.
    """
    evidence = checked(evidence)
    keys = reported_keys(_distinct(ks), chosen.names)
    progress("auditing: reading the logs", 0.0)
    inputs = read_inputs(
        train,
        valid=valid,
        test=test,
        test_negative=test_negative,
        further_tests=further_tests,
        items=items,
        columns=columns,
        min_rating=min_rating,
    )
    if inputs.test is None and evidence != "natural":
        raise ConfigError(f"evidence is '{evidence}', but there is no test; give one, or leave evidence out")
    progress("auditing: reading the lists", 0.3)
    source = Recommendations.of(recs, list_columns.beside(columns))
    catalogue = inputs.item_ids
    scanned = scan(source, inputs.user_ids, catalogue)
    inputs = inputs.joined_by(scanned.unknown_users, scanned.unknown_items)
    groups = chosen.of(inputs.train)
    about = _About(name or source.name, command, None, inputs.titles, inputs.notes)
    how = _How(drop_seen, missing, scanned.has_ranks, scanned.notes, catalogue)
    with meanwhile(lambda: [part.fingerprint for part in inputs.parts.values()]) as fingerprints:
        progress("auditing: ordering the lists", 0.5)
        lists, whole, counts = _collected(inputs, scanned, list_width(keys), drop_seen)

        tests = 1 + len(inputs.further)
        done = iter(range(tests))

        def against(test: Interactions | None, rests_on: Evidence, shown: ShownAtRandom | None = None) -> AuditResult:
            progress("auditing: measuring", 0.7 + 0.3 * next(done) / tests)
            reference = Reference(inputs.train, inputs.valid, test, groups, shown)
            of_test = keys if shown is None else [*keys, *keys_of_shown(_distinct(shown_ks), groups.names)]
            scores = _listed_scores(whole, reference)
            report = measure(
                lists, reference, metrics=of_test, missing=missing, per_user_limit=PER_USER_LIMIT, scores=scores
            )
            fingerprints.result()  # each part keeps its own
            measured = Measured(report, reference)
            seen = {} if drop_seen else {"seen_rows": _seen_places(report, max(ks))}
            counted = {**counts, **seen, **_shown_not_listed(scores)}
            return _result(about, measured, lists, rests_on, counted, how)

        rests_on = evidence if inputs.test is not None else "none"
        result = against(inputs.test, rests_on, _shown_at_random(inputs, shown_half))
        further = {other: against(part, said_by_name(other)) for other, part in inputs.further.items()}
    return replace(result, further=further)


def _shown_at_random(inputs: AuditInputs, half: str) -> ShownAtRandom | None:
    if inputs.test is None or inputs.not_liked is None:
        return None
    return ShownAtRandom.of(inputs.test, inputs.not_liked, half)


def _listed_scores(lists: PackedLists, reference: Reference) -> Array | None:
    candidates = reference.candidates
    return None if candidates is None else listed_scores(lists, candidates, reference.item_count)


def _shown_not_listed(scores: Array | None) -> dict[str, int]:
    return {} if scores is None else {"shown_not_listed": int(np.count_nonzero(np.isneginf(scores)))}


def _collected(
    inputs: AuditInputs, scanned: Scan, width: int, drop_seen: bool
) -> tuple[PackedLists, PackedLists, dict[str, int]]:
    """The lists at this width, the same whole where all of their places are needed, and what was counted on the way."""
    train = inputs.train
    whole, counts = collect(
        scanned,
        train.user_ids,
        train.item_ids,
        width=width if inputs.not_liked is None else None,
        drop_seen=Seen(train, inputs.valid).holds if drop_seen else None,
    )
    lists = whole.cut(width)
    return (
        lists,
        whole,
        {
            **counts,
            "rows_used": len(lists.items),
            "users_unknown": len(scanned.unknown_users),
            "items_unknown": len(scanned.unknown_items),
            "rows_with_unknown_items": scanned.rows_of_unknown_items,
            "rows_without_training": int(np.count_nonzero(train.item_degrees[lists.items] == 0)),
            "users_without_profile": int((train.user_degrees[lists.users] == 0).sum()),
            "merged_duplicates": sum(part.merged for part in inputs.parts.values()),
        },
    )


def audit_evaluation(
    evaluation: Evaluation,
    *,
    further: Mapping[str, tuple[Evaluation, Evidence]] | None = None,
    evidence: Evidence = "natural",
    titles: Mapping[str, str] | None = None,
    name: str,
    protocol: str | None = None,
    command: str = "",
) -> AuditResult:
    """The same from the evaluation of one of our own models, whose lists have row numbers already.

    `further` are evaluations against other tests, and what those rest on. The metrics are those of the evaluation; it
    made lists for the users with a relevant item only.
    """
    about = _About(name, command, protocol, titles or {})

    def audited(one: Evaluation, rests_on: Evidence) -> AuditResult:
        return _result(about, one, one.lists, rests_on, {})

    others = {other: audited(*pair) for other, pair in (further or {}).items()}
    return replace(audited(evaluation, evidence), further=others)


@dataclass(frozen=True)
class _About:
    """What an audit says about itself."""

    name: str
    command: str
    protocol: str | None
    titles: Mapping[str, str]
    notes: tuple[str, ...] = ()  # about the logs


@dataclass(frozen=True)
class _How:
    """How lists were treated, as far as notes tell of it."""

    drop_seen: bool
    missing: Missing
    has_ranks: bool
    notes: tuple[str, ...] = ()  # about the columns of the lists
    catalogue: IdMap | None = None  # before the items joined it that only the lists name


AS_RANKED = _How(drop_seen=False, missing="zero", has_ranks=True)  # lists of our own models


def _result(
    about: _About,
    measured: Measured,
    lists: Lists | PackedLists,
    evidence: Evidence,
    counts: Mapping[str, int],
    how: _How = AS_RANKED,
) -> AuditResult:
    report, reference = measured.report, measured.reference
    train, groups = reference.train, reference.item_groups
    ks = tuple(list_ks(report.keys))
    shown = reference.shown
    named = {
        "train": train,
        "valid": reference.valid,
        "test": reference.relevant,
        NOT_LIKED: None if shown is None else shown.not_liked,
    }
    counted = {**_sizes(reference), **report.counts, **counts}
    has_test = reference.relevant is not None
    notes = notes_of(
        counted, ks, drop_seen=how.drop_seen, missing=how.missing, has_test=has_test, has_ranks=how.has_ranks
    )
    problems = problems_of(counted, has_ranks=how.has_ranks)
    found = found_intervals(report)
    return AuditResult(
        name=about.name,
        ks=ks,
        metrics=report.metrics,
        users=report.users_per_metric,
        intervals={key: one for key, one in found.items() if isinstance(one, Interval)},
        withheld={key: reason for key, reason in found.items() if isinstance(reason, str)},
        counts=counted,
        notes=(*about.notes, *how.notes, *reference.groups.notes, *notes, *problems),
        evidence=evidence,
        exposure=Exposure(
            item_ids=train.item_ids,
            degrees=groups.degrees,
            popular=groups.popular,
            bucket=groups.bucket,
            relevant=None if reference.relevant is None else reference.relevant.item_degrees,
            shown=report.exposures,
        ),
        examples=examples_of(lists, reference, max(ks), about.titles),
        per_user=measured.per_user if report.per_user else None,
        fingerprints={
            **{part: pairs.fingerprint for part, pairs in named.items() if pairs is not None},
            **({} if reference.valid is None else {"development": Seen(train, reference.valid).fingerprint}),
        },
        protocol=about.protocol,
        command=about.command,
        sums=measured.sums if report.sums else None,
        bucket_mass=tuple(int(mass) for mass in groups.bucket_mass),
        titles=about.titles,
        basis=Basis.of(reference, report.counts, missing=how.missing, catalogue=how.catalogue),
        problems=problems,
        families=families_of(report, reference, ks[0]),
        floors=report.floors,
    )


def _distinct(ks: Sequence[int]) -> list[int]:
    if not ks or min(ks) < 1:
        raise ConfigError(f"k is {', '.join(map(str, ks)) or 'not given'}; give at least one cut-off, each at least 1")
    return list(dict.fromkeys(ks))


def _seen_places(report: Report, k: int) -> int:
    """Among the first k places of all lists, those whose item the user had already."""
    if report.moments:
        unseen = sum(report.moments[MetricKey("exposure_rate", k, group)].sums[0] for group in ITEM_GROUPS)
    else:
        unseen = sum(report.sum_of(LISTED_UNSEEN, k, group).sum() for group in ITEM_GROUPS)
    return int(report.exposures[k].sum() - unseen)


def _sizes(reference: Reference) -> dict[str, int]:
    return {
        "users": reference.user_count,
        "users_trained": reference.trained_users,
        "items": reference.item_count,
        "items_trained": int((reference.item_groups.degrees > 0).sum()),
        "items_popular": int(reference.item_groups.popular.sum()),
        "train_interactions": len(reference.train),
        **_sizes_of_valid(reference),
        **_sizes_of_test(reference),
    }


def _sizes_of_valid(reference: Reference) -> dict[str, int]:
    if reference.valid is None:
        return {}
    overlap = int(np.count_nonzero(find(reference.train.keys, reference.valid.keys) >= 0))
    return {
        "valid_interactions": len(reference.valid),
        **({"valid_pairs_in_train": overlap} if overlap else {}),
    }


def _sizes_of_test(reference: Reference) -> dict[str, int]:
    if reference.relevant is None:
        return {}
    unknown = int(np.count_nonzero(reference.item_groups.degrees[reference.relevant.items] == 0))
    return {
        "test_interactions": len(reference.relevant),
        **({"test_pairs_of_unknown_items": unknown} if unknown else {}),
    }
