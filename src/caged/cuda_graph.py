"""Work on CUDA that is recorded once and replayed: without the time that launching its kernels one by one takes.

What is recorded has fixed shapes, reads and writes fixed memory, and never waits for the device.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Generator

log = logging.getLogger(__name__)

Work = Callable[[], object]

WARM_UP_RUNS = 3  # as CUDA graphs ask for: lazy initialisation must not be recorded


def recorded(
    work: Work,
    *,
    name: str,
    generators: Callable[[], Sequence[Generator]] = lambda: (),
    put_back: Callable[[], None] = lambda: None,
) -> Work | None:
    """A recording of `work`; none, after a warning about `name`, where it cannot be recorded.

    It draws from `generators` only. Warming up runs it for real; `put_back` undoes what matters of one run, the
    generators included. The caller keeps alive what `work` reads and writes: the recording knows it by address.
    """
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UP_RUNS):
            work()
            put_back()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    streams = generators()
    for generator in streams:
        graph.register_generator_state(generator)
    try:
        with torch.cuda.graph(graph):
            work()
    except RuntimeError as error:  # something in it waits for the device or allocates outside the graph
        reason = str(error).splitlines()[0]
        log.warning("%s cannot be recorded as a CUDA graph (%s); it runs as plain calls, slower", name, reason)
        for generator in streams:  # these still wait for the end of the recording
            generator.graphsafe_set_state(generator.clone_state())
        put_back()
        return None
    return graph.replay
