"""An index finds nearly the exact lists, always as many items as asked for, and nothing that may not be shown."""

from __future__ import annotations

import builtins
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.made_up_artefact import write_made_up
from caged.errors import RunError
from caged.products.serve import MANIFEST, Ask, Engine, ServedModel
from caged.products.serve.filters import Kept
from caged.products.serve.index import INDEX
from caged.products.serve.index_build import recall
from caged.products.serve.manifest import Notch, checksum
from caged.products.serve.ranking import Ranking, Wanted
from tests.cli.invoke import caged, refused

pytest.importorskip("faiss")
ITEMS, USERS = 4000, 60


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexed") / "artefact"
    write_made_up(folder, items=ITEMS, users=USERS, width=16, index=True)
    return folder


@pytest.fixture(scope="module")
def engines(artefact: Path) -> tuple[Engine, Engine]:
    """With the index, and exact."""
    model = ServedModel.load(artefact)
    return Engine(model), Engine(model, use_index=False)


def lists(engine: Engine, **ask: Any) -> list[np.ndarray]:
    return [engine.recommend(Ask(user_id=user, **ask)).items for user in range(USERS)]


@pytest.mark.parametrize("less_popular", [0.0, 0.1, 0.25, 0.6, 1.0])
def test_it_finds_nearly_the_exact_lists_at_every_notch(engines: tuple[Engine, Engine], less_popular: float) -> None:
    indexed, exact = (lists(engine, less_popular=less_popular) for engine in engines)
    assert recall(exact, indexed) >= 0.97


def test_scores_are_exact(engines: tuple[Engine, Engine]) -> None:
    indexed, exact = (engine.recommend(Ask(user_id=3, less_popular=0.5)) for engine in engines)
    wanted = dict(zip(exact.items.tolist(), exact.scores.tolist(), strict=True))
    found = dict(zip(indexed.items.tolist(), indexed.scores.tolist(), strict=True))
    assert {item: found[item] for item in wanted.keys() & found.keys()} == pytest.approx(
        {item: wanted[item] for item in wanted.keys() & found.keys()}, abs=1e-5
    )
    assert indexed.scores.tolist() == sorted(indexed.scores.tolist(), reverse=True)


def test_a_filter_that_keeps_half_gets_as_many_items(engines: tuple[Engine, Engine]) -> None:
    indexed, exact = (lists(engine, k=30, filters={"half": 1}) for engine in engines)
    halves = engines[0].model.item_table["half"].to_numpy()
    assert {len(one) for one in indexed} == {30}
    assert all((halves[one] == 1).all() for one in indexed)
    assert recall(exact, indexed) >= 0.97


def test_a_filter_that_keeps_what_somebody_likes_least_is_found_in_other_lists(engines: tuple[Engine, Engine]) -> None:
    """The lists that score highest hold none of it."""
    model = engines[0].model
    vector = model.user_vector(0)
    scores = model.item_vectors @ vector
    marks = scores <= np.quantile(scores, 0.3)
    nothing = np.empty(0, dtype=np.int64)
    kept = Kept("least", None, marks, int(marks.sum()))
    wanted = Wanted(20, nothing, vector, 0.0, None, kept, None, nothing)
    index = engines[0].ranking.index
    assert index is not None
    narrow = replace(index, stated=replace(index.stated, notches=(Notch(0.0, 2, 0.0),)))
    (found,), (exact,) = (ranking.best([wanted]) for ranking in (Ranking(model, narrow), engines[1].ranking))
    assert marks[found.rows].all()
    assert len(np.intersect1d(found.rows, exact.rows)) >= 19


def test_a_filter_that_keeps_few_is_exact(engines: tuple[Engine, Engine]) -> None:
    indexed, exact = (lists(engine, filters={"category": 7}, less_popular=0.3) for engine in engines)
    assert [one.tolist() for one in indexed] == [one.tolist() for one in exact]


def test_new_people_and_batches(engines: tuple[Engine, Engine]) -> None:
    asks = [
        Ask(history=[1, 5, 99], k=10, less_popular=0.4),
        Ask(user_id=5, k=10, filters={"half": 0}),
        Ask(user_id=6, k=25),
        Ask(user_id=7, k=10, filters={"category": 3}),
        Ask(user_id=8, k=10, candidates=[1, 2, 3]),
    ]
    together = engines[0].recommend_batch(asks)
    for ask, answer in zip(asks, together, strict=True):
        assert answer.items.tolist() == engines[0].recommend(ask).items.tolist()
    exact = engines[1].recommend_batch(asks)
    assert recall([one.items for one in exact], [one.items for one in together]) >= 0.97


def test_as_many_as_asked_for_come_back_whatever_is_left_out(engines: tuple[Engine, Engine]) -> None:
    indexed, exact = engines
    best = exact.recommend(Ask(user_id=0, k=700)).items
    without = indexed.recommend(Ask(user_id=0, k=20, exclude=best.tolist()))
    assert len(without.items) == 20
    assert not np.isin(without.items, best).any()
    assert len(indexed.recommend(Ask(user_id=0, k=1000)).items) == 1000
    nearly_all = list(range(ITEMS - 40))
    wanted = exact.recommend(Ask(user_id=0, k=20, exclude=nearly_all))
    assert indexed.recommend(Ask(user_id=0, k=20, exclude=nearly_all)).items.tolist() == wanted.items.tolist()


def test_what_is_left_out_is_not_asked_for_beyond_reason(engines: tuple[Engine, Engine]) -> None:
    index = engines[0].ranking.index
    assert index is not None
    assert index.candidates_for(20, 30) == 530
    assert index.candidates_for(1000, 0) == 4000
    assert index.candidates_for(20, 20_000) is None


def test_the_recall_is_stated(artefact: Path, engines: tuple[Engine, Engine]) -> None:
    notches = json.loads((artefact / MANIFEST).read_text())["index"]["notches"]
    assert [notch["less_popular"] for notch in notches] == [0.0, 0.25, 0.5, 1.0]
    assert all(notch["recall"] >= 0.97 for notch in notches)
    assert f"index: {notches[0]['recall']:.3f} of the exact top 20" in engines[0].search


def test_it_answers_on_when_its_folder_is_gone(artefact: Path, engines: tuple[Engine, Engine], tmp_path: Path) -> None:
    shutil.copytree(artefact, tmp_path / "copy")
    engine = Engine(ServedModel.load(tmp_path / "copy"))
    shutil.rmtree(tmp_path / "copy")
    assert [one.tolist() for one in lists(engine, less_popular=0.7)] == [
        one.tolist() for one in lists(engines[0], less_popular=0.7)
    ]


def changed(artefact: Path, place: Path, content: bytes) -> Path:
    """The index is other bytes, with their right checksum."""
    shutil.copytree(artefact, place)
    (place / INDEX).write_bytes(content)
    manifest = json.loads((place / MANIFEST).read_text())
    manifest["files"][INDEX] = checksum(place / INDEX)
    (place / MANIFEST).write_text(json.dumps(manifest))
    return place


def test_a_broken_index_is_refused(artefact: Path, tmp_path: Path) -> None:
    whole = (artefact / INDEX).read_bytes()
    shutil.copytree(artefact, tmp_path / "flipped")
    (tmp_path / "flipped" / INDEX).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(RunError, match=r"index\.faiss was changed"):
        ServedModel.load(tmp_path / "flipped")
    for name, content in (("cut", whole[: len(whole) // 2]), ("other", b"no index at all"), ("empty", b"")):
        place = changed(artefact, tmp_path / name, content)
        refused(caged("serve", place, "--port", "0"), "index.faiss is no index", "export the run again")


def test_the_index_of_another_catalogue_is_refused(artefact: Path, tmp_path: Path) -> None:
    write_made_up(tmp_path / "other", items=3000, users=5, width=16, index=True)
    place = changed(artefact, tmp_path / "mixed", (tmp_path / "other" / INDEX).read_bytes())
    with pytest.raises(RunError, match="built for another catalogue"):
        Engine(ServedModel.load(place))


def test_without_the_library_search_is_exact_and_says_so(
    artefact: Path, engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "faiss":
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    engine = Engine(ServedModel.load(artefact))
    assert "pip install 'caged-rec[serve-index]'" in engine.search
    ask = Ask(user_id=9, less_popular=0.5)
    assert engine.recommend(ask).items.tolist() == engines[1].recommend(ask).items.tolist()
