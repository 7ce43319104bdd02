"""Answers of small searches whose trials are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.products.tune import attempt
from caged.products.tune.answer import Answer, make_answer
from caged.products.tune.choice import choose
from caged.products.tune.finals import Finals
from caged.products.tune.objective import Constraint
from caged.products.tune.search import Limits, Search
from tests.products.tune.answered import CALL, Answered
from tests.products.tune.tuned import MadeUp, settings, write_log


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answered:
    """The answer to a search for recall@20 over two methods; at the same setting `lightgcn` is worse by 0.05."""
    monkeypatch.setattr(attempt, "run_trial", MadeUp())
    log = write_log(tmp_path)

    def answer(*constraints: str, trials: int = 1, tests: Finals | None = None) -> Answer:
        wanted = [Constraint.parse(text) for text in constraints]
        asked = settings(log, "lightgcn", "ips", trials=trials, constraints=wanted)
        (tmp_path / "t").mkdir()
        search = Search.begin(tmp_path / "t", asked, Search.prepared(asked))
        search.journal.write("call", **CALL)
        assert search.run(Limits())
        choice = choose(search)
        assert choice is not None
        return make_answer(search, choice, tests or Finals(), complete=True)

    return answer
