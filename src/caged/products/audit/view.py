"""`caged.audit`: an audit as an object to look at, to compute with and to keep."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from caged.arguments import whole_number
from caged.data.readers.columns import Columns
from caged.evaluation.bootstrap import Interval
from caged.evaluation.groups import grouping
from caged.evaluation.measure import Missing
from caged.evaluation.metrics import MetricKey
from caged.files import write_text
from caged.page.html import templates_are_there
from caged.page.numbers import UNDEFINED, number
from caged.page.text_table import plain_lines
from caged.products.audit.charts import has_test, interval_text
from caged.products.audit.evidence import Evidence
from caged.products.audit.folder import write_audit
from caged.products.audit.group_sections import group_tables
from caged.products.audit.of_lists import ListNames, audit_lists
from caged.products.audit.page import audit_html
from caged.products.audit.result import AuditResult, ChosenFamily
from caged.products.audit.severity import severity
from caged.products.audit.verdict import evidence_text, verdict

REPORT = "report.html"
HEADERS = ("metric", "value", "95% interval", "users")
# What a person wants to see first; `--json`, the page and `metrics` have everything.
LONGEST_LISTS = 1_000_000  # nobody sees the end of one; beyond, a slip of the keyboard fills the memory
_SHOWN = (
    "recall",
    "recall/popular",
    "recall/niche",
    "ndcg",
    "ndcg/popular",
    "ndcg/niche",
    "tail_share",
    "popularity_lift",
    "popularity_lift/niche-taste",
    "popularity_lift/diverse",
    "popularity_lift/blockbuster",
    "delta_gap",
    "upd",
    "novelty",
    "coverage",
    "coverage/niche",
    "gini",
    "intra_list_diversity",
)


class Audit:
    """What an audit found out; `print` shows the verdict and a table, a notebook the whole page.

    `metrics` and `intervals` are by key (`recall@20/niche`), `per_user` is an Arrow table with a row per user, or None
    where there are too many of them to keep. Undefined values are NaN.
    """

    def __init__(self, result: AuditResult) -> None:
        self.result = result

    @property
    def metrics(self) -> dict[str, float]:
        return self.result.metrics

    @property
    def intervals(self) -> dict[str, Interval]:
        return self.result.intervals

    @property
    def per_user(self) -> pa.Table | None:
        return self.result.per_user

    @property
    def notes(self) -> tuple[str, ...]:
        return self.result.notes

    @property
    def verdict(self) -> list[str]:
        """What stands at the top of the page: how badly the lists are captured, then three sentences."""
        return verdict_sentences(self.result)

    def to_html(self) -> str:
        """One self-contained page; needs the extra `report`."""
        return audit_html(self.result)

    def save(self, folder: str | Path) -> Path:
        """Write a folder that `caged compare` and `--against` read, with the page in it where jinja2 is installed."""
        return save_audit(self.result, Path(folder))

    def __str__(self) -> str:
        lines = plain_lines(HEADERS, summary_rows(self.result))
        for table in group_tables(self.result):
            lines += ["", table.title, *plain_lines(table.headers, table.rows)]
        return "\n".join([summary_title(self.result), *self.verdict, "", *lines, *self.notes])

    def __repr__(self) -> str:
        return f"<Audit of {self.result.name}: {len(self.metrics)} metrics, test: {self.result.evidence}>"

    def _repr_html_(self) -> str:
        if not templates_are_there():
            return f"<pre>{html.escape(str(self))}</pre>"
        # In a frame of its own, so that the page's style does not become the notebook's.
        return f'<iframe srcdoc="{html.escape(self.to_html())}" style="width:100%;height:80vh;border:0"></iframe>'


def audit(
    recs: Any,
    train: Any,
    test: Any = None,
    *,
    valid: Any = None,
    test_negative: Any = None,
    items: Any = None,
    k: int | Sequence[int] = 20,
    shown_k: int | Sequence[int] = 5,
    shown_half: str = "all",
    missing: Missing = "zero",
    drop_seen: bool = False,
    evidence: Evidence = "natural",
    further_tests: Mapping[str, Any] | None = None,
    name: str | None = None,
    list_user_column: str | None = None,
    list_item_column: str | None = None,
    score_column: str | None = None,
    rank_column: str | None = None,
    ids: str = "auto",
    popular_share: float | None = None,
    item_groups: Any = None,
    user_groups: Any = None,
    group_separator: str | None = None,
    item_vectors: Any = None,
) -> Audit:
    """See the popularity bias of any recommender.

    `recs`: user_id, item_id and score or rank, a file or any frame that speaks Arrow. `train`, `test` and `valid` are
    files, frames or `Interactions`; without `test` there is no accuracy. `items` is a table of item_id and perhaps
    title. `k` is one cut-off or several; charts show the first. `missing` says what a user with relevant items and no
    list means (`zero` or `skip`); `drop_seen` removes listed items that the user had in train or valid. `evidence` says
    what the test rests on (natural, intervened, random or oracle), `further_tests` are other tests by name. The columns
    of lists may be named; who names a score or a rank reads that one alone. `ids="text"` takes every identifier for a
    name, also `NaN` or `1.2e+12`.

    `test_negative` is what was shown at random and not liked, beside `test` with what was liked. Then `shown_auc` and
    its relatives say how the lists order what chance showed: give lists that hold these items, with their scores.
    `shown_k` are the cut-offs of `shown_ndcg` and `shown_precision`; `shown_half` judges one half of the users, "first"
    or "second", so that what is chosen on one can be reported on the other.

    `popular_share` is the share of the items with training interactions that is popular; a fifth unless given.
    `item_groups` and `user_groups` are tables with an id and columns such as genre or age band: a file, `FILE:COLUMN`,
    a frame, or a list of these. Every metric of item or user groups is then also reported for theirs, as
    `recall@20/genre=Drama` and `recall@20/user:age=18-24`, with `rsp@20/genre` and `reo@20/genre` for parity. List
    columns put an item into several groups; text does where `group_separator` stands in it. With `item_vectors` (a
    Parquet or safetensors file, or a frame with item_id and vector), `intra_list_diversity@20` is measured by them.
    """
    ks = _cut_offs("k", k)
    columns = Columns().reading_ids(ids)
    chosen = grouping(
        popular_share,
        item_groups,
        user_groups,
        separator=group_separator,
        item_vectors=item_vectors,
        columns=columns,
    )
    result = audit_lists(
        recs,
        train=train,
        test=test,
        valid=valid,
        test_negative=test_negative,
        items=items,
        ks=ks,
        shown_ks=_cut_offs("shown_k", shown_k),
        shown_half=shown_half,
        missing=missing,
        drop_seen=drop_seen,
        evidence=evidence,
        further_tests=further_tests,
        name=name,
        list_columns=ListNames(list_user_column, list_item_column, score_column, rank_column),
        columns=columns,
        chosen=chosen,
    )
    return Audit(result)


def _cut_offs(name: str, given: int | Sequence[int]) -> tuple[int, ...]:
    several = (
        list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes) else [given]
    )
    return tuple(whole_number(name, one, least=1, most=LONGEST_LISTS) for one in several)


def save_audit(result: AuditResult, folder: Path) -> Path:
    """The folder of an audit, and the page in it where it can be made."""
    page = audit_html(result) if templates_are_there() else None
    write_audit(result, folder)
    if page is not None:
        write_text(folder / REPORT, page)
    return folder


def verdict_sentences(result: AuditResult) -> list[str]:
    graded = severity(result)
    return [*([] if graded is None else [str(graded)]), *map(str, verdict(result))]


def summary_title(result: AuditResult) -> str:
    protocol = f", protocol {result.protocol}" if result.protocol else ""
    rests_on = f"test: {result.evidence}" if has_test(result) else "no test"
    return f"Audit of {result.name}{protocol}, {rests_on}"


def summary_rows(result: AuditResult, *, only_accuracy: bool = False) -> list[list[str]]:
    """The metrics that matter first: key, value, interval, users; accuracy only where there is a test."""
    return [
        [
            key,
            number(result.metrics[key]),
            interval_text(result, key, number) or UNDEFINED,
            f"{result.users[key]:,}",
        ]
        for key in _summary_keys(result)
        if not only_accuracy or key.metric.needs_test
    ]


def _summary_keys(result: AuditResult) -> list[MetricKey]:
    wanted = [text.partition("/") for text in _SHOWN]
    shown = {MetricKey(name, k, group or None) for k in result.ks for name, _, group in wanted}
    return [
        key
        for key in result.keys
        if key.metric.of_shown or (key in shown and (has_test(result) or not key.metric.needs_test))
    ]


def to_json(result: AuditResult) -> dict[str, Any]:
    """What `caged audit --json` prints."""
    graded = severity(result)
    return {
        "name": result.name,
        "protocol": result.protocol,
        "evidence": result.evidence,
        "rests_on": evidence_text(result),
        "severity": None if graded is None else {"level": graded.level, "grade": graded.grade},
        "verdict": verdict_sentences(result),
        "metrics": result.metrics,
        "intervals": {key: list(interval[:2]) for key, interval in result.intervals.items()},
        "intervals_withheld": result.withheld,
        "users": result.users,
        "counts": result.counts,
        "notes": list(result.notes),
        "fingerprints": result.fingerprints,
        **({"groups": [_family_json(family) for family in result.families]} if result.families else {}),
        **({"shown_floors": result.floors} if result.floors else {}),
        "further_tests": {
            name: {
                "evidence": other.evidence,
                "metrics": other.metrics,
                "intervals": {key: list(interval[:2]) for key, interval in other.intervals.items()},
                "users": other.users,
            }
            for name, other in result.further.items()
        },
    }


def _family_json(family: ChosenFamily) -> dict[str, Any]:
    groups = [one._asdict() for one in family.groups]
    return {"family": family.name, "of": "users" if family.of_users else "items", "groups": groups}
