"""Work on CUDA that is recorded once and replayed: without the time that launching its kernels one by one takes.

What is recorded has fixed shapes, reads and writes fixed memory, and never waits for the device.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator

log = logging.getLogger(__name__)

Work = Callable[[], object]

WARM_UP_RUNS = 3  # as CUDA graphs ask for: lazy initialisation must not be recorded


@dataclass(frozen=True, eq=False)
class Replay:
    """A recording, with the work that keeps alive what it reads and writes."""

    work: Work
    graph: torch.cuda.CUDAGraph

    def __call__(self) -> None:
        self.graph.replay()


def recorded(
    work: Work, *, name: str, generators: Sequence[Generator] = (), put_back: Callable[[], None] = lambda: None
) -> Work:
    """`work` as a recording; itself, after a warning about `name`, where it cannot be recorded.

    It draws from `generators` only. Warming up runs it for real; `put_back` restores all that one run changes, the
    generators included, so that what this returns has not run yet.
    """
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UP_RUNS):
            work()
            put_back()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    try:
        with torch.cuda.graph(graph):
            work()
    except RuntimeError as error:  # something in it waits for the device or allocates outside the graph
        reason = str(error).splitlines()[0]
        log.warning("%s cannot be recorded as a CUDA graph (%s); it runs as plain calls, slower", name, reason)
        for generator in generators:  # these still wait for the end of the recording
            generator.graphsafe_set_state(generator.clone_state())
        put_back()
        return work
    return Replay(work, graph)
