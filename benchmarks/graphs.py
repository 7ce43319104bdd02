"""The graphs of the benchmarks: the published data where it is at hand, else power laws of exactly the same size."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.known import DATASETS, data_folder
from caged.data.source import load
from caged.errors import CagedError
from caged.seeding import numpy_generator


class Shape(NamedTuple):
    """Sizes of a training part, and the dataset that has them."""

    users: int
    items: int
    interactions: int
    dataset: str | None = None


SHAPES = {
    "ml-1m": Shape(6_040, 3_706, 797_758, "ml-1m-caged"),
    "ml-100k": Shape(943, 1_682, 100_000, "ml-100k"),
    "ml-latest-small": Shape(610, 9_724, 100_836, "ml-latest-small"),
    # The public files of Pinterest lack a third of the users, so it is always generated; its published test part has
    # a fifth of each user's interactions, rounded up, which gives the size of train.
    "pinterest": Shape(55_186, 9_916, 1_149_850),
    "tiny": Shape(300, 200, 4_000),  # for tests
}


class Log(NamedTuple):
    train: Interactions
    origin: str  # `ml-1m-caged` or `generated`


@cache
def log_of(name: str) -> Log:
    shape = SHAPES[name]
    if shape.dataset is not None:
        dataset = DATASETS[shape.dataset]
        try:
            if dataset.find(data_folder() / dataset.folder) is not None:
                source = load(shape.dataset)
                train = source.log if source.parts is None else source.parts["train"]
                if train is not None:
                    return Log(train, shape.dataset)
        except CagedError:  # files that are there and broken are no reason not to measure
            pass
    return Log(generated(shape), "generated")


def generated(shape: Shape, seed: int = 1) -> Interactions:
    """Distinct pairs, users and items drawn by power laws, rows in random order of popularity."""
    generator = numpy_generator(seed, "bench")
    user_share = _power_law(shape.users, 0.5, generator)
    item_share = _power_law(shape.items, 0.8, generator)
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < shape.interactions:
        users = generator.choice(shape.users, shape.interactions, p=user_share)
        items = generator.choice(shape.items, shape.interactions, p=item_share)
        keys = np.union1d(keys, users * np.int64(shape.items) + items)
    keys = np.sort(generator.choice(keys, shape.interactions, replace=False))
    return Interactions(IdMap.range(shape.users), IdMap.range(shape.items), keys // shape.items, keys % shape.items)


def _power_law(count: int, exponent: float, generator: np.random.Generator) -> Array:
    weight = generator.permutation(np.arange(1, count + 1) ** -exponent)
    return np.asarray(weight / weight.sum())
