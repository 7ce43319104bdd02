"""Lists, metrics and what they are measured against.

`measure.measure` measures lists, `evaluate.evaluate` a model: that and `topk` need torch, nothing else here does.
"""

from caged.evaluation.bootstrap import Interval
from caged.evaluation.lists import Lists, PackedLists
from caged.evaluation.measure import Missing, Report
from caged.evaluation.metrics import METRICS, Metric, MetricKey, metric_keys
from caged.evaluation.outcome import Evaluation, Measured
from caged.evaluation.reference import Reference

__all__ = [
    "METRICS",
    "Evaluation",
    "Interval",
    "Lists",
    "Measured",
    "Metric",
    "MetricKey",
    "Missing",
    "PackedLists",
    "Reference",
    "Report",
    "metric_keys",
]
