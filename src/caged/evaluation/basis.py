"""What values were measured with, apart from train and test: numbers of another basis differ for that reason alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from caged.data.ids import IdMap
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
    """Catalogue and groups as checksums of identifiers, and what became of users without a list."""

    catalogue: str
    items: int  # in the catalogue
    groups: str  # which items are popular
    missing: Missing
    left_out: int  # users with relevant items that `missing="skip"` left out

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
            catalogue=_checksum(listed.values),
            items=len(listed),
            groups=_checksum(own.values.filter(pa.array(reference.item_groups.popular))),
            missing=missing,
            left_out=counts["users_relevant_without_list"] if missing == "skip" else 0,
        )

    @classmethod
    def from_json(cls, stored: Any) -> Basis | None:
        """None where a folder does not say it, as those of earlier versions."""
        return cls(**stored) if isinstance(stored, dict) else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

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
            found.append(
                Unlike(
                    "the groups of popular and niche items differ",
                    "use the same groups for both",
                    lambda key: key.metric.of_groups or key.group is not None,
                )
            )
        return found


def _checksum(ids: pa.Array) -> str:
    """Of identifiers in their order; integers and text that looks alike are not the same."""
    digest = hashlib.sha256(str(ids.type).encode())
    if pa.types.is_integer(ids.type):
        digest.update(ids.to_numpy().tobytes())
    else:
        digest.update(pc.binary_length(ids).to_numpy().tobytes())  # so that "ab", "c" is not "a", "bc"
        for text in ids.cast(pa.large_binary()):
            digest.update(text.as_buffer())
    return digest.hexdigest()
