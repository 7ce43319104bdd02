"""One layer of propagation over a made-up log of any size: seconds, bytes held, and what a very popular item costs.

python -m benchmarks.layers --users 2M --items 200k --interactions 100M --k 64 --device cuda

Weights as factors of nodes against the same weights per edge. `most popular item` computes the row of that item and no
other (CUDA only): if it took about as long as a layer, long rows would not be cut well. Rates count the rows that are
read, once per interaction and direction. Peaks are of CUDA: above what was held before, in tables of float32 numbers.
With --tiles, other sizes of a program of the CUDA kernel are tried on the same graph: tables beyond the cache may want
more rows in flight than those that it was tuned on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import torch

from benchmarks.billion import count
from benchmarks.device_log import Shape, generate
from benchmarks.timing import interleaved, seconds
from caged.graph import BipartiteGraph, Engine, Tables, Weights, bytes_held, degree_weights, propagate, uniform_layers
from caged.graph.propagate import propagate_transposed

ONE_LAYER = (0.0, 1.0)
ROUNDS = 5


def measure(shape: Shape, width: int, device: torch.device, *, tiles: bool) -> Iterator[str]:
    """Lines of text, each as soon as it is known."""
    log = generate(shape, 1, device)
    engine = Engine() if device.type == "cpu" else Engine("sparse")
    built: list[BipartiteGraph] = []
    rows = (log.user_offsets, log.items)
    building = seconds(lambda: built.append(BipartiteGraph.from_rows(*rows, log.item_count, device, engine)), device)
    graph = built[0]
    longest = int(graph.item_degrees.max())
    yield f"{graph.edge_count:,} interactions, built in {building:.2f} s; the most popular item has {longest:,}"
    tables = Tables(*(torch.randn(size, width, device=device) for size in (graph.user_count, graph.item_count)))
    factored = degree_weights(graph)
    yield from _of_weights("factors", graph, factored, tables)
    if device.type == "cuda":
        yield _peak(graph, factored, tables)
        if tiles:
            yield from _of_tiles(factored, tables)
    yield from _of_weights("per edge", graph, factored.per_edge(), tables)


def _of_weights(name: str, graph: BipartiteGraph, weights: Weights, tables: Tables) -> Iterator[str]:
    work = {
        "layer": lambda: propagate(weights, tables, ONE_LAYER),
        "layer, transposed": lambda: propagate_transposed(weights, tables, ONE_LAYER),
    }
    if weights.operator.skips_rows:
        flags = torch.zeros(graph.user_count + graph.item_count, dtype=torch.uint8, device=graph.device)
        flags[graph.user_count + int(graph.item_degrees.argmax())] = 1
        work["most popular item"] = lambda: propagate(weights, tables, ONE_LAYER, flags)
    took = interleaved({what: partial(seconds, run, graph.device) for what, run in work.items()}, ROUNDS)
    held = bytes_held(graph, weights) / graph.edge_count
    read = 2 * graph.edge_count * tables.users.shape[1] * (4 if graph.device.type == "cpu" else 2)
    for what, value in took.items():
        rate = f", {read / value / 1e9:,.0f} GB/s" if what != "most popular item" else ""
        yield f"{name}: {what} {1000 * value:,.2f} ms{rate}"
    yield f"{name}: {held:.1f} bytes per interaction held by graph and weights, those of nodes included"


def _of_tiles(weights: Weights, tables: Tables) -> Iterator[str]:
    from caged.graph.kernels.triton_products import TILES, Tile

    device = tables.users.device
    usual = TILES[torch.bfloat16]
    for sizes in product((2, 4, 8), (1, 2, 4), (1, 2)):
        TILES[torch.bfloat16] = Tile(*sizes)
        work = {"layer": lambda: seconds(lambda: propagate(weights, tables, ONE_LAYER), device)}
        took = interleaved(work, ROUNDS)["layer"]
        yield f"chunks {sizes[0]}, edges {sizes[1]}, warps {sizes[2]}: layer {1000 * took:,.2f} ms"
    TILES[torch.bfloat16] = usual


def _peak(graph: BipartiteGraph, weights: Weights, tables: Tables) -> str:
    torch.cuda.reset_peak_memory_stats(graph.device)
    before = torch.cuda.memory_allocated(graph.device)
    propagate(weights, tables, uniform_layers(2))
    taken = torch.cuda.max_memory_allocated(graph.device) - before
    return f"factors: two layers take {taken / (4 * sum(part.numel() for part in tables)):.2f} tables at their peak"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--users", type=count, default=2 * 10**6)
    parser.add_argument("--items", type=count, default=2 * 10**5)
    parser.add_argument("--interactions", type=count, default=10**8)
    parser.add_argument("--k", type=int, default=64)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tiles", action="store_true", help="try other sizes of a program of the CUDA kernel")
    chosen = parser.parse_args(arguments)
    shape = Shape(chosen.users, chosen.items, chosen.interactions)
    for line in measure(shape, chosen.k, torch.device(chosen.device), tiles=chosen.tiles):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
