"""What is to be trained, in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from caged.arguments import at_least_one, choice
from caged.errors import ConfigError

FACTORED = ("lightgcn", "softmax", "adjnorm", "ips", "reg", "macr", "lightgcn_bce")  # two numbers per node are weights
PER_EDGE = ("caged", "galore", "advdrop", "apda", "ips_aggregation")  # weights of their own for every interaction
PLANNED = (*FACTORED, *PER_EDGE)
BY_COLUMNS = ("adjnorm", "caged", "ips", "lightgcn", "lightgcn_bce", "reg", "softmax")  # what several devices can share
MOST_DEVICES = 1024
SYMMETRIC = tuple(name for name in FACTORED if name != "adjnorm")
DEVICES = ("cuda", "cpu")

INT32 = 2**31 - 1
USUAL_LENGTH = 100  # as `eval.list_length`
AUTO_STEPS = 200  # as `TrainConfig.batches`, which needs torch to be imported
AUTO_BATCH = 2048
AUTO_MULTIPLE = 256


def auto_batch(interactions: int) -> int:
    """Triples per step with `batch_size=auto`.

    >>> auto_batch(100_000), auto_batch(10**9)
    (2048, 5000192)
    """
    needed = -(-interactions // AUTO_STEPS)
    return max(AUTO_BATCH, -(-needed // AUTO_MULTIPLE) * AUTO_MULTIPLE)


def one_device_only(method: str, able: Iterable[str]) -> str:
    return (
        f"{method} can be trained on one device only, its steps need all columns at once; use --devices 1, or one of "
        f"{', '.join(able)}"
    )


@dataclass(frozen=True)
class Workload:
    """A training on one or several devices of one kind. `interactions` are those of the training part."""

    users: int
    items: int
    interactions: int
    embedding_size: int = 64
    layers: int = 3
    method: str = "lightgcn"
    device: str = "cuda"
    devices: int = 1
    batch_size: int | None = None  # None: auto
    validated: bool = True  # a validation part chooses the epoch, so the best tables are kept
    validation_users: int | None = None  # whom it ranks for; None: everybody
    wide_tables: bool = False  # propagation in float32 on CUDA
    tested_users: int = 0  # who get lists in the final test; 0: there is none
    list_length: int = USUAL_LENGTH  # of these lists

    def __post_init__(self) -> None:
        for name in ("users", "items", "interactions", "embedding_size", "devices"):
            at_least_one(name, getattr(self, name))
        if self.validation_users is not None:
            at_least_one("validation_users", self.validation_users)
        choice("device", self.device, DEVICES)
        if self.layers < 0:
            raise ConfigError(f"layers is {self.layers}; it must be 0 or more")
        if self.method not in PLANNED:
            raise ConfigError(
                f"a plan for method '{self.method}' cannot be made; it knows {', '.join(PLANNED)}, which train tables"
            )
        if self.interactions > self.users * self.items:
            raise ConfigError(
                f"{self.users:,} users and {self.items:,} items have {self.users * self.items:,} pairs, fewer than the "
                f"{self.interactions:,} interactions; check the three numbers"
            )
        if self.devices > MOST_DEVICES:
            raise ConfigError(f"devices is {self.devices}; it must be from 1 to {MOST_DEVICES}")
        if self.devices > 1 and self.method not in BY_COLUMNS:
            raise ConfigError(one_device_only(self.method, BY_COLUMNS))
        if self.devices > self.embedding_size:
            raise ConfigError(
                f"{self.devices} devices share {self.embedding_size} columns, so some would have none; use at most "
                f"{self.embedding_size} devices"
            )

    @property
    def nodes(self) -> int:
        return self.users + self.items

    @property
    def offset_bytes(self) -> int:
        """Of a place in the rows of a graph."""
        return 4 if self.interactions < INT32 else 8

    @property
    def columns(self) -> int:
        """Of the tables on the device that has the most of them."""
        return -(-self.embedding_size // self.devices)

    @property
    def numbers(self) -> int:
        """Of both tables on one device."""
        return self.nodes * self.columns

    @property
    def batch(self) -> int:
        return min(self.batch_size or auto_batch(self.interactions), self.interactions)

    @property
    def steps(self) -> int:
        return -(-self.interactions // self.batch)
