"""What Prometheus reads."""

from __future__ import annotations

from caged.products.serve.metrics import BUCKETS, RequestMetrics, family


def test_requests_are_counted_by_what_they_got_and_how_long_they_took() -> None:
    metrics = RequestMetrics()
    for status, seconds in ((200, 0.0004), (200, 0.02), (503, 99.0)):
        metrics.observe("POST", "/recommend", status, seconds)
    lines = list(metrics.lines())
    assert 'caged_requests_total{method="POST",route="/recommend",status="200"} 2' in lines
    assert 'caged_requests_total{method="POST",route="/recommend",status="503"} 1' in lines
    buckets = [float(line.rpartition(" ")[2]) for line in lines if "_bucket" in line]
    assert buckets == [sum(seconds <= edge for seconds in (0.0004, 0.02, 99.0)) for edge in (*BUCKETS, 100)]
    assert 'caged_request_seconds_sum{route="/recommend"} 99.020399999999995' in lines
    assert 'caged_request_seconds_count{route="/recommend"} 3' in lines


def test_labels_are_escaped() -> None:
    assert list(family("m", "gauge", "About.", [({"name": 'a"\\\n'}, 1.5)])) == [
        "# HELP m About.",
        "# TYPE m gauge",
        'm{name="a\\"\\\\\\n"} 1.5',
    ]
