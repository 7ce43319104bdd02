"""What a training step is made of: every kernel (on CPU: every operator) by time and calls.

    python -m caged.bench.profile lightgcn macr --device cuda --width 256 --layers 3 --json profile.json

Steps are taken as training takes them, on CUDA replayed from their recording. Gaps between kernels are what is left of
the step when all kernels are subtracted.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from caged.bench.graphs import SHAPES, log_of
from caged.bench.setting import Setting
from caged.bench.timing import Ceilings
from caged.bench.training_cases import Training, configured
from caged.experiments.environment import hardware, versions
from caged.experiments.records import shareable
from caged.files import write_json
from caged.models import METHODS

STEPS = 20
SHOWN = 12  # lines of the printed table
NOISE = re.compile(r"\bvoid |at::native::|\(anonymous namespace\)::|::?<unnamed>::|c10::|std::")


class Part(NamedTuple):
    name: str
    calls: float  # per step
    seconds: float  # per step


def profiled(method: str, shape: str, device: torch.device, **options: Any) -> dict[str, Any]:
    """Seconds of a step, undisturbed, and its parts, longest first."""
    setting = Setting(device, torch.get_num_threads(), quick=False, ceilings=Ceilings(device))
    training = Training(configured(method, **options), log_of(shape), setting)
    training.count = min(STEPS, training.sampler.steps)
    training.method.begin_epoch(training.context)
    training.step()  # warms up, and records on CUDA
    seconds = min(training.step() for _ in range(3))
    on_gpu = device.type == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as found:
        training.step()
    parts = sorted(_parts(found.key_averages(), training.count, on_gpu), key=lambda part: -part.seconds)
    return {
        "method": method,
        "shape": shape,
        "options": options,
        "step_s": seconds,
        "kernels_s": sum(part.seconds for part in parts),
        "kernels": sum(part.calls for part in parts),
        "parts": [part._asdict() for part in parts],
    }


def _parts(events: Iterable[Any], steps: int, on_gpu: bool) -> list[Part]:
    """Events of one (shortened) name together."""
    calls: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for event in events:
        microseconds = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if microseconds > 0:
            calls[short(event.key)] += event.count
            taken[short(event.key)] += microseconds
    return [Part(name, calls[name] / steps, 1e-6 * taken[name] / steps) for name in taken]


def short(kernel: str) -> str:
    """The name of a kernel without what says nothing about it.

    >>> short("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, int>(int, float)")
    'vectorized_elementwise_kernel<4, FillFunctor<float>, int>'
    """
    return NOISE.sub("", kernel).split("(")[0].strip()[:100]


def printed(result: dict[str, Any]) -> str:
    head = (
        f"{result['method']} on {result['shape']}: {1e3 * result['step_s']:.3f} ms a step, "
        f"{result['kernels']:.0f} kernels of {1e3 * result['kernels_s']:.3f} ms together"
    )
    lines = [f"{1e6 * part['seconds']:9.1f} us {part['calls']:6.1f} x  {part['name']}" for part in result["parts"]]
    rest = result["parts"][SHOWN:]
    if rest:
        lines[SHOWN:] = [f"{1e6 * sum(part['seconds'] for part in rest):9.1f} us in {len(rest)} others"]
    return "\n".join([head, *lines, ""])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m caged.bench.profile", description=(__doc__ or "").splitlines()[0])
    trained = [name for name, known in METHODS.items() if known.method(known.config()).stages()]
    parser.add_argument("methods", nargs="+", choices=trained, metavar="METHOD", help=", ".join(trained))
    parser.add_argument("--shape", default="ml-1m", choices=sorted(SHAPES))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write everything into this file")
    chosen = parser.parse_args(arguments)
    device = torch.device(chosen.device)
    options = {"embedding_size": chosen.width, "layers": chosen.layers}
    results = [profiled(method, chosen.shape, device, **options) for method in chosen.methods]
    sys.stdout.write("\n".join(map(printed, results)))
    if chosen.json is not None:
        command = shareable(" ".join(["python", "-m", "caged.bench.profile", *(arguments or sys.argv[1:])]))
        write_json(
            chosen.json,
            {"command": command, "versions": versions(), "hardware": hardware(device), "results": results},
        )


if __name__ == "__main__":
    main()
