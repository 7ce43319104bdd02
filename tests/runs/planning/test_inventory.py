"""The memory model counts what the engine allocates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from caged import cuda_graph
from caged.evaluation import topk
from caged.graph import BipartiteGraph, Sampler, block_sampling, by_item, bytes_held, sampling
from caged.graph.kernels import cpu, cuda
from caged.models import backbone_loss
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.runs.planning import course
from caged.runs.planning import inventory as model
from caged.runs.planning.inventory import ALWAYS, TEST, TRAINING, Inventory, inventory
from caged.runs.planning.workload import USUAL_LENGTH, Workload
from caged.runs.spec import EvalConfig
from caged.seeding import Generators

USERS, ITEMS, COLUMNS = 3000, 1000, 16


@pytest.fixture(scope="module")
def graph() -> BipartiteGraph:
    users, items = np.nonzero(np.random.default_rng(2).random((USERS, ITEMS)) < 0.03)
    return BipartiteGraph.from_edges(users, items, USERS, ITEMS)


def of(counted: Inventory, *names: str) -> float:
    found = [one.bytes for one in counted.allocations if one.when in (ALWAYS, TRAINING) and one.name.startswith(names)]
    assert found
    return sum(found)


def of_kept(counted: Inventory) -> float:
    return sum(one.bytes for one in counted.allocations if one.name == model.KEPT)


def on_cpu(graph: BipartiteGraph) -> Workload:
    return Workload(USERS, ITEMS, graph.edge_count, COLUMNS, 2, device="cpu")


def test_constants_are_those_of_the_engine() -> None:
    assert course.BLOCKS_ABOVE == block_sampling.BLOCKS_ABOVE
    assert course.BLOCK_TRIPLES == block_sampling.BLOCK_TRIPLES
    assert by_item.PIECES["cuda"] == course.SORTED_AT_ONCE
    assert course.CHUNK == cuda.CHUNK
    assert course.WARM_UP_RUNS == cuda_graph.WARM_UP_RUNS
    assert backbone_loss.SoftmaxOptions().candidate_rows == course.CANDIDATE_ROWS
    assert course.SCORE_BLOCK == topk.CUDA_SCORE_BLOCK_BYTES
    assert model.CPU_SCORE_BLOCK == topk.SCORE_BLOCK_BYTES
    assert (model.CPU_COLUMNS, model.CPU_COLUMNS_OF_LARGE) == (cpu.COLUMNS, cpu.COLUMNS_OF_LARGE_TABLES)
    assert model.LARGE_ROWS == cpu.LARGE_TABLE_ROWS
    assert model.BITMAP_BYTES == sampling.BITMAP_BYTES
    assert model.LEAST_SCORED == topk.LEAST_USERS
    assert EvalConfig().list_length == USUAL_LENGTH


def test_pattern_weights_and_tables_take_what_is_counted(graph: BipartiteGraph) -> None:
    fresh = replace(graph)
    method = LightGCN(LightGCNConfig(embedding_size=COLUMNS, layers=2))
    method.prepare(fresh, Generators(1))
    method.scorer()  # weights are made when they are first used
    counted = inventory(on_cpu(fresh))
    assert bytes_held(fresh, method) == pytest.approx(of(counted, "pattern", "weights", "tables"), rel=0.1)


def test_the_sampler_takes_what_is_counted(graph: BipartiteGraph) -> None:
    fresh = replace(graph)
    before = bytes_held(fresh)
    sampler = Sampler(fresh, 2048)
    epoch = sampler.epoch(Generators(1)["sampling"])
    counted = inventory(on_cpu(fresh))
    taken = bytes_held(fresh, sampler) - before + sum(part.nbytes for part in epoch.parts)
    assert taken == pytest.approx(of(counted, "sampler"), rel=0.1)


def test_a_sparse_layout_takes_at_most_what_is_counted(graph: BipartiteGraph) -> None:
    fresh = replace(graph)
    chunks = bytes_held(*fresh.sparse_layout.chunks)
    assert chunks <= of(inventory(replace(on_cpu(fresh), device="cuda")), "pattern: chunks") <= 1.5 * chunks


def test_memory_falls_with_devices_and_columns_and_rises_with_what_is_kept() -> None:
    big = Workload(20_000_000, 2_000_000, 10**9, 64, 2)
    assert inventory(replace(big, devices=4)).peak < inventory(replace(big, embedding_size=32)).peak
    assert inventory(replace(big, embedding_size=32)).peak < inventory(big).peak
    assert inventory(replace(big, validated=False)).peak < inventory(big).peak - 4 * big.numbers
    assert inventory(replace(big, method="caged")).peak > inventory(big).peak + 19 * 10**9
    assert inventory(replace(big, wide_tables=True)).in_tensors == inventory(big).in_tensors


def test_a_billion_interactions_are_drawn_in_blocks() -> None:
    small, large = (Workload(10**6, 10**5, count) for count in (course.BLOCKS_ABOVE, course.BLOCKS_ABOVE + 1))
    assert of(inventory(large), "sampler") < of(inventory(small), "sampler") / 4


def test_tensors_and_the_free_blocks_beside_them_add_up() -> None:
    found = inventory(Workload(1_000_000, 100_000, 50_000_000))
    assert found.peak == round(sum(one.bytes for one in found.allocations))
    assert of_kept(found) == found.peak - sum(one.bytes for one in found.allocations if one.name != model.KEPT) > 0
    assert found.in_tensors is not None
    assert found.in_tensors < found.peak


def test_on_cpu_nothing_is_kept_free(graph: BipartiteGraph) -> None:
    found = inventory(on_cpu(graph))
    assert found.in_tensors is None
    assert of_kept(found) == 0


TESTED = Workload(300_000, 20_000, 4_000_000, 32, 2, device="cpu", tested_users=300_000)


def test_the_final_test_is_of_those_who_get_lists() -> None:
    """It may be the worst moment; without it, or with shorter lists, less is needed."""
    whole, short, none = (
        inventory(replace(TESTED, **changed)) for changed in ({}, {"list_length": 20}, {"tested_users": 0})
    )
    assert whole.peak_phase == TEST
    assert whole.peak > short.peak > none.peak
    assert none.peak_phase != TEST
    places = TESTED.tested_users * TESTED.list_length
    assert model.bytes_of(model.of_final_test(TESTED)) == pytest.approx(
        model.PER_SEEN * TESTED.interactions
        + model.PER_PLACE * places
        + model.PER_TESTED * TESTED.tested_users
        + model.WRITING
    )
    lists = {one.name: one.bytes for one in model.of_final_test(replace(TESTED, items=50))}[model.LISTS]
    assert lists == model.PER_PLACE * TESTED.tested_users * 50


def test_the_final_test_takes_no_less_than_training_left() -> None:
    for columns in (8, 256):
        found = inventory(replace(TESTED, embedding_size=columns))
        training = inventory(replace(TESTED, embedding_size=columns, tested_users=0))
        held = model.bytes_of(one for one in training.during(TEST))
        assert found.peak >= held + model.LEFT * (training.peak - held)
    assert found.peak >= training.peak + model.WRITING  # wide tables: lists fit into what is free


def test_who_validates_on_a_sample_keeps_less_of_what_was_seen() -> None:
    work = Workload(1_000_000, 100_000, 50_000_000)
    sampled = replace(work, validation_users=100_000)
    seen = [of(inventory(one), "validation: what was seen") for one in (work, sampled)]
    assert seen[0] == pytest.approx(4 * work.interactions + 8 * work.users, rel=0.01)
    assert seen[1] == pytest.approx(seen[0] / 10, rel=0.05)


def test_several_devices_record_no_step() -> None:
    work = Workload(1_000_000, 100_000, 50_000_000)
    names = {one.name for one in inventory(replace(work, devices=2)).allocations if one.when == ALWAYS}
    assert "a step: gradients" not in names
    assert "a step: gradients" in {one.name for one in inventory(work).allocations if one.when == ALWAYS}


@pytest.mark.parametrize("layers", [0, 1, 3])
@pytest.mark.parametrize("method", ["lightgcn", "softmax", "adjnorm", "caged"])
@pytest.mark.parametrize("wide", [False, True])
def test_every_course_ends_with_what_stays(layers: int, method: str, wide: bool) -> None:
    work = Workload(30_000, 2000, 400_000, 32, layers, method, wide_tables=wide)
    left = {one.name for one in course.course(work).tensors}
    assert course.TABLES in left
    assert not left & {course.PASSING, course.COPIES, course.SCORES, course.VECTORS, course.PROPAGATION}
