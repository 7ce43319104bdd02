"""Answers from a finished run: an artefact, an engine over it, and a server. Only exporting needs torch."""

from caged.products.serve.engine import Answer, Engine, UnknownItemError, UnknownUserError
from caged.products.serve.manifest import MANIFEST, Manifest
from caged.products.serve.model import ServedModel
from caged.products.serve.requests import Ask, Limits

__all__ = [
    "MANIFEST",
    "Answer",
    "Ask",
    "Engine",
    "Limits",
    "Manifest",
    "ServedModel",
    "UnknownItemError",
    "UnknownUserError",
]
