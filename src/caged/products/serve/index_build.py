"""Build the index of an artefact, and measure how much of the exact lists it finds. Needs faiss, no torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.errors import ConfigError
from caged.files import write_json
from caged.products.serve.engine import Answer, Engine
from caged.products.serve.index import HEAD, INDEX, INSTALL, item_table, library
from caged.products.serve.manifest import MANIFEST, IndexAs, Manifest, Notch, checksum
from caged.products.serve.model import ServedModel
from caged.products.serve.requests import Ask

LEAST_ITEMS = 200_000  # exact search is quick enough below
HEAD_SHARE = 32  # one item in so many is always looked at
STRENGTHS = (0.0, 0.25, 0.5, 1.0)
WANTED = 0.985  # recall for which lists are added
K = 20
PEOPLE = 250  # on whom the number of lists is chosen, and as many others on whom recall is measured
TRAINED_ON = 40  # items for each list
AT_ONCE = 2**16  # items that are added
SEED = 1


def wants_index(manifest: Manifest) -> bool:
    """Whether exact search would be slow."""
    return manifest.kind == "vectors" and manifest.items > LEAST_ITEMS and manifest.users > 0


def add_index(folder: Path) -> Manifest:
    """To an artefact that has none. The manifest is written last, so a folder is whole at any time."""
    faiss = library()
    if faiss is None:
        raise ConfigError(f"an index needs the package faiss, which is not installed; {INSTALL}")
    model = ServedModel.load(folder, check=False)
    if model.manifest.kind != "vectors":
        raise ConfigError(f"{model.manifest.method} has no vectors, and an index is made of vectors")
    head, lists, scale = build(faiss, model)
    np.save(folder / f"{HEAD}.npy", head, allow_pickle=False)
    faiss.write_index(lists, str(folder / INDEX))
    files = {**model.manifest.files, **{name: checksum(folder / name) for name in (f"{HEAD}.npy", INDEX)}}
    stated = IndexAs(f"faiss {faiss.__version__}", lists.nlist, len(head), scale, K, 0, ())
    manifest = replace(model.manifest, files=dict(sorted(files.items())), index=stated)
    measured = _measured(replace(model, manifest=manifest, arrays={**model.arrays, HEAD: head}))
    manifest = replace(manifest, index=measured)
    write_json(folder / MANIFEST, manifest.to_json())
    return manifest


# ---------------------------------------------------------------- building


class Built(NamedTuple):
    head: Array  # rows of the items with the longest vectors
    lists: Any  # the others
    scale: float  # of the column of the knob


def build(faiss: Any, model: ServedModel) -> Built:
    draw = np.random.default_rng(SEED)
    scale = _scale(model)
    lengths = np.linalg.norm(model.item_vectors, axis=1)
    order = np.argsort(-lengths, kind="stable")
    head, others = (np.sort(part).astype(np.int32) for part in np.split(order, [len(order) // HEAD_SHARE]))
    count = list_count(len(others))
    some = item_table(model, draw.choice(others, min(len(others), TRAINED_ON * count), replace=False), scale)
    means = faiss.Kmeans(some.shape[1], count, niter=10, seed=SEED, min_points_per_centroid=1)
    means.train(some)
    lists = empty_lists(faiss, means.centroids)
    lists.train(some)
    for first in range(0, len(others), AT_ONCE):
        rows = others[first : first + AT_ONCE]
        lists.add_with_ids(item_table(model, rows, scale), rows.astype(np.int64))
    by_score = faiss.IndexFlatIP(some.shape[1])  # items are in the list with the nearest mean, people read by score
    by_score.add(means.centroids)
    lists.quantizer = by_score
    lists.referenced_objects.append(by_score)
    return Built(head, lists, scale)


def list_count(items: int) -> int:
    """A power of two near the square root."""
    return 1 << round(math.log2(max(items, 1)) / 2)


def empty_lists(faiss: Any, means: Array) -> Any:
    """4 bits for each number of the difference to the mean."""
    count, width = means.shape
    nearest = faiss.IndexFlatL2(width)
    nearest.add(means)
    lists = faiss.IndexIVFPQFastScan(nearest, width, count, width, 4, faiss.METRIC_INNER_PRODUCT)
    lists.own_fields = False
    lists.referenced_objects = [nearest]
    lists.by_residual = True
    return lists


def _scale(model: ServedModel) -> float:
    """Makes the column of the knob as wide as the others: the typical spread of scores over the length of a person."""
    lengths = np.linalg.norm(_people(model, np.arange(min(len(model.users), 1000))), axis=1)
    spread, length = np.median(model.arrays["user_spread"][: len(lengths)]), np.median(lengths)
    return float(spread / length) if spread > 0 and length > 0 else 1.0


def _people(model: ServedModel, users: Array) -> Array:
    return np.stack([model.user_vector(user) for user in users.tolist()])


# ---------------------------------------------------------------- measuring


def _measured(model: ServedModel) -> IndexAs:
    """With as many lists for each notch as reach the recall, measured on other people than it was chosen on."""
    stated = model.manifest.index
    assert stated is not None
    people = np.random.default_rng(SEED).permutation(len(model.users))[: 2 * PEOPLE].tolist()
    chosen_on, measured_on = people[::2], people[1::2] or people
    exact = Engine(model, use_index=False)
    notches: list[Notch] = []
    for strength in STRENGTHS:
        wanted = _lists(exact, chosen_on, strength)
        probes = notches[-1].probes if notches else max(1, stated.lists // 64)
        while True:
            engine = _with_notch(model, Notch(strength, probes, 0.0))
            if probes >= stated.lists or recall(wanted, _lists(engine, chosen_on, strength)) >= WANTED:
                break
            probes = min(2 * probes, stated.lists)
        found = recall(_lists(exact, measured_on, strength), _lists(engine, measured_on, strength))
        notches.append(Notch(strength, probes, round(found, 4)))
    return replace(stated, people=len(measured_on), notches=tuple(notches))


def _with_notch(model: ServedModel, notch: Notch) -> Engine:
    stated = replace(model.manifest.index, notches=(notch,))  # type: ignore[type-var]  # an index is there
    return Engine(replace(model, manifest=replace(model.manifest, index=stated)))


def _lists(engine: Engine, people: Sequence[int], strength: float) -> list[Array]:
    names = engine.model.users
    asks = [Ask(user_id=names[user], k=min(K, engine.limits.k), less_popular=strength) for user in people]
    return [answer.items for answer in engine.recommend_batch(asks) if isinstance(answer, Answer)]


def recall(exact: Sequence[Array], found: Sequence[Array]) -> float:
    """How much of the exact lists was found, over all of them."""
    hits = sum(len(np.intersect1d(one, other)) for one, other in zip(exact, found, strict=True))
    return float(hits / max(1, sum(map(len, exact))))
