"""A simulated shop with a feedback loop, and what is learned from its clicks, judged by the truth."""

from caged.products.demo.experiment import METHODS, Demo, run_demo
from caged.products.demo.page import comparison, demo_html
from caged.products.demo.words import sentences

__all__ = ["METHODS", "Demo", "comparison", "demo_html", "run_demo", "sentences"]
