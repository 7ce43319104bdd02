"""Tuning: many methods, the same chances for each, one answer.

space      what may be tried
sampler    which setting a trial gets
objective  what is wished for, and what must hold
settings   what a search was asked for
journal    the record on disk
trial      one training, measured on validation
attempt    a trial as the record says it
crew       who trains: this process, or workers
turns      who is next, and what a trial may know
watching   how far a search has come
search     who trains when
choice     what was found, on validation
finish     what was chosen, trained anew and tested
presets    what was chosen, as a file and a command
answer     who wins: words, tables, JSON
"""

from caged.products.tune.answer import Answer, answer_json, answer_sentences, answer_tables
from caged.products.tune.objective import Constraint, Objective
from caged.products.tune.run import NothingChosen, resume_tune, start_tune
from caged.products.tune.settings import make_settings, seconds_in
from caged.products.tune.space import declared_space, space_json, space_toml

__all__ = [
    "Answer",
    "Constraint",
    "NothingChosen",
    "Objective",
    "answer_json",
    "answer_sentences",
    "answer_tables",
    "declared_space",
    "make_settings",
    "resume_tune",
    "seconds_in",
    "space_json",
    "space_toml",
    "start_tune",
]
