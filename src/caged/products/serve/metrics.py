"""Counters and latencies in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], float]


class RequestMetrics:
    """What is counted of every request; touched by the event loop alone."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: Counter[str] = Counter()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter of float

    def lines(self) -> Iterator[str]:
        counted = [
            ({"method": method, "route": route, "status": str(status)}, float(count))
            for (method, route, status), count in sorted(self._requests.items())
        ]
        yield from family("caged_requests_total", "counter", "Requests, by what they got.", counted)
        name = "caged_request_seconds"
        yield from _head(name, "histogram", "Time from a request to its answer.")
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for edge, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                total += count
                yield _line(f"{name}_bucket", {"route": route, "le": edge}, total)
            yield _line(f"{name}_sum", {"route": route}, self._seconds[route])
            yield _line(f"{name}_count", {"route": route}, total)


def family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """All lines of one metric."""
    yield from _head(name, kind, about)
    for labels, value in samples:
        yield _line(name, labels, value)


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    r"""
    >>> _line("m", {"name": 'a"b'}, 2)
    'm{name="a\\"b"} 2'
    """
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value:.17g}" if labels else f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
