"""The best model for a log, in one command: split, search, choose, test, refit, within a time budget.

wish       what was asked for
shortlist  the methods and their settings
clock      the time there is
plan       what fits into it
search     who trains when
kept       the models of trials
choice     the rule, on validation
judgement  the test, once
audits     before and after
served     the model that knows the whole log
run        all of it, and how it goes on
answer     words, tables, JSON, what to type next
page       the same on a page
"""

from caged.products.best.answer import (
    FILE,
    MODEL,
    PAGE,
    Answer,
    answer_json,
    answer_sentences,
    answer_tables,
    next_commands,
    time_sentence,
)
from caged.products.best.run import AlreadyFinished, find_best
from caged.products.best.wish import Wish

__all__ = [
    "FILE",
    "MODEL",
    "PAGE",
    "AlreadyFinished",
    "Answer",
    "Wish",
    "answer_json",
    "answer_sentences",
    "answer_tables",
    "find_best",
    "next_commands",
    "time_sentence",
]
