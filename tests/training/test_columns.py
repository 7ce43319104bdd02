"""Training by columns: several ranks end where one does, send what the model says and give up on a silent rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from caged.columns import WHOLE, column_ranges
from caged.models import METHODS
from caged.models.encoder import drawn
from caged.training import load_checkpoint
from tests.training.on_ranks import BATCH, TRIED, WIDTH, found_by, interrupted, outcome, resumed

CLOSE = {"atol": 1e-5, "rtol": 0.0}


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """Everything that two ranks do for these tests, in one go: starting them takes longer than their work."""
    folder = tmp_path_factory.mktemp("ranks")
    interrupted(folder / "one")
    return found_by(2, folder), folder


def assert_close(found, expected):
    assert found["state"].keys() == expected["state"].keys()
    for name, value in expected["state"].items():
        torch.testing.assert_close(found["state"][name], value, **CLOSE, msg=lambda text, name=name: f"{name}: {text}")
    torch.testing.assert_close(found["scores"], expected["scores"], **CLOSE)
    assert found["validation"] == expected["validation"]
    assert found["losses"] == pytest.approx(expected["losses"], abs=1e-5)


@pytest.mark.parametrize("name", TRIED)
def test_two_ranks_end_where_one_does(name, two_ranks):
    assert_close(two_ranks[0][name], outcome(name))


def test_every_method_that_says_so_is_tried():
    able = {name for name, known in METHODS.items() if known.method.by_columns is not None}
    assert able == {method for method, _ in TRIED.values()}
    assert not able & {"advdrop", "apda", "galore", "macr", "mostpop", "ease", "itemknn"}


def test_a_step_sends_what_the_model_says(two_ranks):
    """A ring of P ranks sends 2 (P - 1)/P of what is summed, and P - 1 times what each adds to what is gathered."""
    floats_summed = 2 * BATCH + 1  # partial scores, and the L2 term
    floats_gathered = 2 * BATCH * WIDTH // 2 + 1  # own columns of users and positives, and the L2 term
    assert two_ranks[0]["sent"] == {"lightgcn": (1, 4 * floats_summed), "softmax": (1, 4 * floats_gathered)}


def test_a_checkpoint_of_one_goes_on_with_two(two_ranks):
    assert_close(two_ranks[0]["resumed from one"], resumed(two_ranks[1] / "one"))


def test_a_checkpoint_of_two_goes_on_with_one(two_ranks):
    folder = two_ranks[1]
    tensors = [load_checkpoint(folder / name).tensors() for name in ("several", "one")]
    assert {name: value.shape for name, value in tensors[0].items()} == {
        name: value.shape for name, value in tensors[1].items()
    }
    assert_close(resumed(folder / "several"), resumed(folder / "one"))


def test_a_rank_that_does_not_answer_is_told_in_a_sentence(two_ranks):
    assert "has not answered" in two_ranks[0]["lost"]
    assert "\n" not in two_ranks[0]["lost"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are found in /proc")
def test_no_thread_of_a_group_outlives_it(two_ranks):
    """One that frees a tensor while Python ends would make the process abort."""
    within, after = two_ranks[0]["threads"]
    assert within
    assert after == []


def test_ranks_say_who_they_are(two_ranks):
    assert two_ranks[0]["described"] == {"devices": 2, "backend": "gloo"}
    assert WHOLE.described() is None


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 4])
def test_more_ranks_end_where_one_does(size, tmp_path):
    interrupted(tmp_path / "one")
    found = found_by(size, tmp_path)
    for name in TRIED:
        assert_close(found[name], outcome(name))
    assert_close(resumed(tmp_path / "several"), resumed(tmp_path / "one"))


# ---------------------------------------------------------------- in one process


@pytest.mark.parametrize(("width", "ranks"), [(64, 4), (10, 4), (3, 3), (7, 1)])
def test_ranges_cover_every_column_once(width, ranks):
    covered = [column for own in column_ranges(width, ranks) for column in range(width)[own]]
    assert covered == list(range(width))
    sizes = [own.stop - own.start for own in column_ranges(width, ranks)]
    assert max(sizes) - min(sizes) <= 1
    assert sizes[0] == max(sizes)


@pytest.mark.parametrize("rows", [1, 16, 47, 48, 50, 64])
def test_columns_are_those_of_the_whole_table(rows, monkeypatch):
    monkeypatch.setattr("caged.models.encoder.DRAWN_ROWS", 16)
    whole = drawn(rows, 5, 0.1, torch.Generator().manual_seed(3), slice(None))
    for own in column_ranges(5, 2):
        assert torch.equal(drawn(rows, 5, 0.1, torch.Generator().manual_seed(3), own), whole[:, own])


# A process of its own, because the peak that the system reports never goes down: so the smaller one goes first.
MEMORY = """
import json
import torch
from benchmarks.graphs import Shape, generated
from benchmarks.memory import peak_memory
from caged.columns import Columns
from caged.graph import BipartiteGraph, Epoch, Sampler
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.seeding import Generators
from caged.training.step import PlainSteps

class OneOfFour(Columns):  # without the others: what it sends comes back
    size = 4
    own = slice(0, 16)
    def whole(self, table):
        return torch.ones(len(table), 64)

log = generated(Shape(90_000, 30_000, 600_000))
graph, generators = BipartiteGraph.from_interactions(log), Generators(1)
epoch = Sampler(graph, 2048).epoch(generators["sampling"])
one_step = Epoch(*(part[:1] for part in epoch.parts))

def train(columns, width):
    method = LightGCN(LightGCNConfig(embedding_size=width, layers=3))
    method.columns = columns
    method.prepare(graph, generators)
    optimizer = torch.optim.Adam(method.parameters(method.stages()[0]), fused=True)
    steps = PlainSteps(method, optimizer)
    steps.run([one_step])
    best = method.state().clone()
    steps.run([one_step])
    method.scorer()

train(Columns(), 1)  # what the first training of all leaves behind
peaks = [peak_memory()]
for columns in (OneOfFour(), Columns()):
    train(columns, 64)
    peaks.append(peak_memory())
print(json.dumps(peaks))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read through getrusage")
def test_a_quarter_of_the_columns_takes_a_third_of_the_memory():
    """Beside the graph, at the fullest moment of steps and of the vectors for ranking, which every rank has whole.

    From 128 columns on, one process on CPU spares memory in its steps, which narrower ranks do not (docs/scale.md).
    """
    exact = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20)}  # a freed table is gone at once, a small one too
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, env=exact)
    graph, quarter, whole = json.loads(done.stdout)
    table = 4 * 64 * 120_000
    assert whole - graph > 6 * table  # or nothing was measured
    assert quarter - graph <= 0.35 * (whole - graph)
