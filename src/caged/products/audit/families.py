"""What an audit says about the groups that somebody chose: who is in them, and which share of everything they get."""

from __future__ import annotations

import math
from collections.abc import Mapping

from caged.data.families import Family
from caged.data.ids import Array
from caged.evaluation.group_names import GroupName
from caged.evaluation.measure import Report
from caged.evaluation.reference import Reference
from caged.products.audit.result import ChosenFamily, ChosenGroup


def families_of(report: Report, reference: Reference, k: int) -> tuple[ChosenFamily, ...]:
    """Families of items with their shares of history, places and wishes; families of users with those who are in."""
    groups = reference.groups
    counted = {"history": groups.items.degrees, "places": report.exposures[k]}
    if reference.relevant is not None:
        counted["wanted"] = reference.relevant.item_degrees
    of_items = [_of_items(name, family, counted) for name, family in groups.item_families.items()]
    return (*of_items, *(_of_users(name, family, report) for name, family in groups.user_families.items()))


def _of_items(name: str, family: Family, counted: Mapping[str, Array]) -> ChosenFamily:
    def shares(place: int) -> dict[str, float]:
        member = family.member(place)
        totals = {what: float(counts.sum()) for what, counts in counted.items()}
        return {
            what: float(counts[member].sum()) / totals[what] if totals[what] else math.nan
            for what, counts in counted.items()
        }

    return ChosenFamily(
        family.name,
        name,
        of_users=False,
        groups=tuple(
            ChosenGroup(group, str(GroupName(family.name, group)), int(family.sizes[place]), **shares(place))
            for place, group in enumerate(family.groups)
        ),
    )


def _of_users(name: str, family: Family, report: Report) -> ChosenFamily:
    keys = {group: str(GroupName(family.name, group, of_users=True)) for group in family.groups}
    return ChosenFamily(
        family.name,
        name,
        of_users=True,
        groups=tuple(ChosenGroup(group, key, int(report.members(key).sum())) for group, key in keys.items()),
    )
