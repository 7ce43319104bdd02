"""What values were measured with, apart from train and test: numbers of another basis differ for that reason alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from caged.data.ids import IdMap
from caged.data.popularity import POPULAR_SHARE
from caged.evaluation.group_names import GroupName
from caged.evaluation.measure import Missing
from caged.evaluation.metrics import MetricKey
from caged.evaluation.reference import Reference


class Unlike(NamedTuple):
    """One thing in which two bases differ."""

    sentence: str
    fix: str
    concerns: Callable[[MetricKey], bool]  # whose value depends on it


@dataclass(frozen=True)
class Basis:
    """Catalogue, groups and vectors as checksums, and what became of users without a list."""

    catalogue: str
    items: int  # in the catalogue
    groups: str  # which items are popular
    missing: Missing
    left_out: int  # users with relevant items that `missing="skip"` left out
    popular_share: str = str(POPULAR_SHARE)  # a fraction
    families: Mapping[str, str] = field(default_factory=dict)  # who is in which chosen group, by family
    shown: str | None = None  # what was shown at random, liked and not; None without it
    vectors: str | None = None  # of the items, where somebody gave them

    @classmethod
    def of(
        cls,
        reference: Reference,
        counts: Mapping[str, int],
        *,
        missing: Missing = "zero",
        catalogue: IdMap | None = None,
    ) -> Basis:
        """`catalogue` leaves out items that only the lists name: lists may differ, catalogues must not."""
        own = reference.train.item_ids
        listed = own if catalogue is None else catalogue
        return cls(
            catalogue=checksum_of_ids(listed.values),
            items=len(listed),
            groups=checksum_of_ids(own.values.filter(pa.array(reference.item_groups.popular))),
            missing=missing,
            left_out=counts["users_relevant_without_list"] if missing == "skip" else 0,
            popular_share=str(reference.groups.popular_share),
            families=dict(reference.groups.checksums),
            shown=None if reference.shown is None else reference.shown.fingerprint,
            vectors=None if reference.groups.vectors is None else reference.groups.vectors.checksum,
        )

    @classmethod
    def from_json(cls, stored: Any) -> Basis | None:
        """None where a folder does not say it, as those of earlier versions."""
        return cls(**stored) if isinstance(stored, dict) else None

    def to_json(self) -> dict[str, Any]:
        """Without what nobody chose."""
        usual = {"popular_share": str(POPULAR_SHARE), "families": {}}
        return {name: value for name, value in asdict(self).items() if usual.get(name) != value}

    @property
    def share(self) -> Fraction:
        return Fraction(self.popular_share)

    def unlike(self, other: Basis) -> list[Unlike]:
        found = []
        if self.catalogue != other.catalogue:
            found.append(
                Unlike(
                    f"the catalogues differ ({self.items:,} items and {other.items:,})",
                    "audit both with the same --items, --valid and --test",
                    lambda key: key.metric.counts_catalogue,
                )
            )
        if self.left_out != other.left_out:
            found.append(
                Unlike(
                    f"users with test items and no list are left out, {self.left_out:,} and {other.left_out:,} of them",
                    "use the same --missing for both, zero where lists are missing that should be there",
                    lambda key: key.metric.needs_test,
                )
            )
        if self.groups != other.groups:
            shares = f" (the most popular {float(self.share):.4g} of them, and {float(other.share):.4g})"
            found.append(
                Unlike(
                    f"the groups of popular and niche items differ{shares if self.share != other.share else ''}",
                    "use the same train part and the same --popular-share for both",
                    lambda key: key.metric.of_groups or (key.group is not None and key.chosen is None),
                )
            )
        found += [
            _unlike_family(name) for name, sum_ in self.families.items() if other.families.get(name, sum_) != sum_
        ]
        if None not in (self.shown, other.shown) and self.shown != other.shown:
            found.append(
                Unlike(
                    "what was shown at random differs, or the half of the users that is judged by it",
                    "use the same test_negative part and the same half (eval.shown_half, --shown-half) for both",
                    lambda key: key.metric.of_shown,
                )
            )
        if None not in (self.vectors, other.vectors) and self.vectors != other.vectors:
            found.append(
                Unlike(
                    "the vectors of the items differ",
                    "use the same --item-vectors for both",
                    lambda key: key.metric.of_vectors and key.group is None,
                )
            )
        return found


def _unlike_family(name: str) -> Unlike:
    family = GroupName.parse(name)
    kind = "user" if family.of_users else "item"
    return Unlike(
        f"the {kind}s are sorted otherwise into the groups of {family.family}",
        f"use the same --{kind}-groups for {family.family} in both",
        lambda key: key.chosen is not None and key.chosen._replace(group=None) == family,
    )


def checksum_of_ids(ids: pa.Array) -> str:
    """Of identifiers in their order; integers and text that looks alike are not the same."""
    digest = hashlib.sha256(str(ids.type).encode())
    if pa.types.is_integer(ids.type):
        digest.update(ids.to_numpy().tobytes())
    else:
        digest.update(pc.binary_length(ids).to_numpy().tobytes())  # so that "ab", "c" is not "a", "bc"
        for text in ids.cast(pa.large_binary()):
            digest.update(text.as_buffer())
    return digest.hexdigest()
