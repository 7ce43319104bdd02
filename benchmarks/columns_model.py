"""What training by columns costs by the formulas of docs/scale.md: bytes, memory and seconds on P devices.

python -m benchmarks.columns_model --users 200M --items 20M --interactions 10B --k 64 --layers 2 --devices 8 \\
    --seconds-per-row 2e-11 --bytes-per-second 1e11

A second dimension, partitions of the users, is in the model and not in the program: `--partitions` splits the devices
into so many groups, each with its part of the users and all items.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.billion import count
from caged.data.ids import Array
from caged.errors import ConfigError
from caged.runs.planning.sent import FLOAT, summed

# Bytes of the graph and of the sampler, as docs/scale.md counts them under "What is held".
PER_INTERACTION, PER_NODE, PER_USER = 8.3, 30, 24
PER_TRIPLE, LEAST_TRIPLES = 32, 2**24  # of a block: as it is drawn, and where a step reads it
TABLES_HELD = 4  # trained tables, two moments of Adam, the best state
TABLES_PASSING = 4  # gradients, propagated vectors, their gradient, one more while sums are made


EDGE_COLUMNS = 5  # to find a row costs as much as to add so many of its columns (benchmarks/columns_check.py, CPU)


def work(own: int, width: int = 64) -> float:
    """Of propagation with `own` columns, against `width` of them."""
    return (EDGE_COLUMNS + own) / (EDGE_COLUMNS + width)


@dataclass(frozen=True)
class Shape:
    users: float
    items: float
    interactions: float
    width: int
    layers: int


@dataclass(frozen=True)
class Machine:
    """What is assumed of a device and of the wires between devices; see docs/scale.md for where it comes from."""

    seconds_per_row: float  # to read and add one row of 64 float32 numbers in propagation
    bytes_per_second: float  # between devices, per device
    latency: float = 2e-5  # seconds of a message between devices


@dataclass(frozen=True)
class Cost:
    """Of an epoch on one of the devices."""

    memory: float  # bytes
    graph: float  # bytes, part of memory, with what sampling holds
    steps: int
    sent: float  # bytes
    computing: float  # seconds
    sending: float  # seconds

    @property
    def seconds(self) -> float:
        return self.computing + self.sending


def cost(shape: Shape, devices: int, partitions: int, machine: Machine, steps: int = 200) -> Cost:
    """An epoch of LightGCN with BPR on devices / partitions column groups of `partitions` parts of the users each.

    A part holds its users' interactions and rows, and all items. After every layer the messages to items, which each
    part has summed over its own users, are summed over the parts: (L forward + L backward) tables of items per step.
    """
    columns, batch = devices // partitions, shape.interactions / steps
    own_width = -(-shape.width // columns)
    interactions, users = shape.interactions / partitions, shape.users / partitions
    graph = PER_INTERACTION * interactions + PER_NODE * (users + shape.items) + PER_USER * users
    graph += PER_TRIPLE * max(LEAST_TRIPLES, batch / partitions)
    tables = (TABLES_HELD + TABLES_PASSING) * FLOAT * (users + shape.items) * own_width
    vectors = FLOAT * (users + shape.items) * shape.width if devices > 1 else 0.0
    passing = TABLES_PASSING * FLOAT * (users + shape.items) * own_width
    memory = graph + max(tables, tables - passing + vectors)  # steps, or whole vectors for ranking
    layers = 2 * shape.layers  # forward and backward
    rows = 2 * interactions * layers * steps
    computing = rows * machine.seconds_per_row * work(own_width)
    scores = summed(FLOAT * (2 * batch / partitions + 1), columns) if columns > 1 else 0.0
    items = layers * summed(FLOAT * shape.items * own_width, partitions) if partitions > 1 else 0.0
    sent = steps * (scores + items)
    messages = steps * ((columns > 1) + layers * (partitions > 1))
    sending = sent / machine.bytes_per_second + messages * machine.latency * math.ceil(math.log2(max(devices, 2)))
    return Cost(memory, graph, steps, sent, computing, sending)


def simulated_layer(matrix: csr_matrix, users: Array, items: Array, partitions: int) -> tuple[Array, Array, float]:
    """One layer as `partitions` groups of users would compute it: new rows of users and items, and the bytes that a
    group sends. `matrix` (M, N) holds the weights; a group has its rows of it, its users and all items."""
    bounds = [round(part * matrix.shape[0] / partitions) for part in range(partitions + 1)]
    parts = [(matrix[start:stop], users[start:stop]) for start, stop in pairwise(bounds)]
    to_users = np.concatenate([weights @ items for weights, _ in parts])  # without a message
    to_items = sum((weights.T @ own for weights, own in parts), start=np.zeros_like(items))  # one sum over the groups
    return to_users, to_items, summed(items.nbytes, partitions)


def partitions_of(devices: int, width: int) -> list[int]:
    """Into how many groups the devices can be divided, such that every device of a group has a column."""
    powers = (2**exponent for exponent in range(devices.bit_length()))
    possible = [groups for groups in powers if devices % groups == 0 and 0 < devices // groups <= width]
    if devices < 1 or not possible:
        raise ConfigError(
            f"--devices is {devices} with --k {width}; it must be from 1 to --k, or such that halving it some times "
            f"gives a whole number of at most --k, such as {2 * width}"
        )
    return possible


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=count, default=count("200M"))
    parser.add_argument("--items", type=count, default=count("20M"))
    parser.add_argument("--interactions", type=count, default=count("10B"))
    parser.add_argument("--k", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--seconds-per-row", type=float, required=True, help="of 64 float32 numbers, in propagation")
    parser.add_argument("--bytes-per-second", type=float, required=True, help="between devices")
    given = parser.parse_args(arguments)
    try:
        possible = partitions_of(given.devices, given.k)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    shape = Shape(given.users, given.items, given.interactions, given.k, given.layers)
    machine = Machine(given.seconds_per_row, given.bytes_per_second)
    print("partitions  GiB of a device  of it graph  GiB sent per epoch  s computing  s sending  s per epoch")
    for partitions in possible:
        found = cost(shape, given.devices, partitions, machine)
        cells = (found.memory / 2**30, found.graph / 2**30, found.sent / 2**30)
        times = (found.computing, found.sending, found.seconds)
        widths = (15, 11, 18, 11, 9, 11)
        line = "  ".join(f"{value:>{size},.1f}" for value, size in zip((*cells, *times), widths, strict=True))
        print(f"{partitions:>10}  {line}")


if __name__ == "__main__":
    main()
