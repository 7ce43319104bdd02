"""Tuning: many methods, the same chances for each, one answer.

space       what may be tried
sampler     which setting a trial gets
objective   what is wished for, and what must hold
settings    what a search was asked for
journal     the record on disk
trial       one training, measured on validation
attempt     a trial as the record says it
halving     which trials end early
crew        who trains: this process, or workers
turns       who is next, and what a trial may know
watching    how far a search has come
search      who trains when
choice      what was found, on validation
again       the same trials judged by another goal
finish      what was chosen, trained anew and tested
finals      which trainings these are, and what is kept of them
presets     what was chosen, as a file and a command
evidence    how sure a difference on the test part is
importance  what each option did
answer      who wins, as JSON; words, tables, text and page say it to people
record      what goes under version control, and the preset that comes from it
"""

from caged.products.tune.again import judge_again
from caged.products.tune.answer import Answer, answer_json
from caged.products.tune.journal import STOPPED, Journal, Trial
from caged.products.tune.objective import Constraint, Goal, Limit, Objective, front
from caged.products.tune.page import answer_html, write_page
from caged.products.tune.record import check_record, preset_of_record, read_record, write_record
from caged.products.tune.run import NothingChosen, resume_tune, start_tune, told_tune
from caged.products.tune.settings import Settings, make_settings, seconds_in
from caged.products.tune.space import Values, declared_space, space_json, space_toml
from caged.products.tune.tables import answer_tables
from caged.products.tune.text import answer_latex, answer_markdown
from caged.products.tune.trial import Outcome, SearchData, load_search_data, run_trial
from caged.products.tune.words import answer_sentences

__all__ = [
    "STOPPED",
    "Answer",
    "Constraint",
    "Goal",
    "Journal",
    "Limit",
    "NothingChosen",
    "Objective",
    "Outcome",
    "SearchData",
    "Settings",
    "Trial",
    "Values",
    "answer_html",
    "answer_json",
    "answer_latex",
    "answer_markdown",
    "answer_sentences",
    "answer_tables",
    "check_record",
    "declared_space",
    "front",
    "judge_again",
    "load_search_data",
    "make_settings",
    "preset_of_record",
    "read_record",
    "resume_tune",
    "run_trial",
    "seconds_in",
    "space_json",
    "space_toml",
    "start_tune",
    "told_tune",
    "write_page",
    "write_record",
]
