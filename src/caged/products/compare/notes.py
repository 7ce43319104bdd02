"""What a reader of a comparison has to know: how it was tested, whom it leaves out, what to be careful about."""

from __future__ import annotations

from collections.abc import Sequence

from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import LEAST_RUNS
from caged.products.compare.differences import Difference
from caged.products.compare.groups import Group, development_of, kind_of_test
from caged.runs.protocols import PROTOCOLS

NOTABLE_LOSS = 0.01  # share of the users of one side without a value on the other


def notes(
    groups: Sequence[Group], differences: Sequence[Difference], ks: Sequence[int], *, one_split: bool
) -> list[str]:
    said = _about_tests(groups, one_split=one_split)
    entries = [entry for group in groups for entry in group.entries]
    without = [entry for entry in entries if not entry.has_users]
    if without and one_split:
        said.append(f"{without[0].folder} stores no values per user, so there is no test over its users")
    foreign = [entry.folder.name for entry in entries if entry.protocol is None]
    if foreign and len(foreign) < len(entries):
        said.append(f"no protocol is given for {', '.join(foreign)}, so we do not know how the lists were chosen")
    left_out = sorted({k for entry in entries for k in entry.ks} - set(ks))
    if left_out:
        said.append(f"not all folders have metrics at k = {', '.join(map(str, left_out))}, so these are left out")
    lost = [one for one in differences if any(one.lost)]
    if lost:
        said.append(_about_users(groups[0].name, lost))
    if len({entry.fingerprints["train"] for entry in entries}) > 1 and one_split:
        said.append(
            "some folders count validation as part of train and others keep it apart: the same pairs are masked, but "
            "popularity is counted slightly differently"
        )
    if len({development_of(entry) for entry in entries}) > 1 and one_split:
        said.append("the validation parts differ: they were masked, so the candidates are not quite the same")
    return said


def about_groups(by_groups: Sequence[MetricKey], shown: Sequence[MetricKey]) -> list[str]:
    """Where to find what the folders say about groups that somebody chose, and that is not shown."""
    families = dict.fromkeys(key.chosen.family for key in by_groups if key.chosen is not None)
    if not families or any(key.chosen is not None for key in shown):
        return []
    return [
        f"all folders have metrics by {', '.join(families)}, which are not compared here: name those that matter, "
        f"such as --metrics {by_groups[0]}"
    ]


def _about_tests(groups: Sequence[Group], *, one_split: bool) -> list[str]:
    base, *others = groups
    kinds = {group.name: kind_of_test(base, group) for group in others}
    said = []
    if "seeds" in kinds.values() and one_split:
        said.append(
            "tested over seeds: Welch's t over runs; the tests over users average each user's value over the runs first"
        )
    elif "seeds" in kinds.values():
        said.append("tested over seeds: paired t over runs on the same split, each seed having its own")
    if "users" in kinds.values():
        said.append(
            "one run per method: the tests are over users and say nothing about another training seed; "
            f"{LEAST_RUNS} runs per method allow a test over seeds"
        )
    if None in kinds.values():
        untested = ", ".join(f"{group.name} {len(group.entries)}" for group in others if kinds[group.name] is None)
        said.append(
            f"not tested: it takes one run, or at least {LEAST_RUNS}, of both methods (here: {base.name} "
            f"{len(base.entries)}, {untested})"
        )
    return said


def _about_users(baseline: str, lost: Sequence[Difference]) -> str:
    parts = [
        f"{one.metric}: {one.users:,} in common, {one.lost[0]:,} only in {baseline}, "
        f"{one.lost[1]:,} only in {one.method}"
        for one in lost
    ]
    return f"the user sets differ, so the differences are over the users in common ({'; '.join(parts)})"


def warnings(baseline: str, differences: Sequence[Difference], protocol: str | None) -> list[str]:
    said = []
    if protocol in PROTOCOLS and (warning := PROTOCOLS[protocol].warning):
        said.append(warning)
    for one in differences:
        for name, only in zip((baseline, one.method), one.lost, strict=True):
            share = only / (only + (one.users or 0)) if only else 0.0
            if share > NOTABLE_LOSS:
                said.append(
                    f"{one.metric} of {one.method}: {share:.1%} of the users of {name} have no value on the other side "
                    "and are left out of the difference"
                )
    return said
