"""The Python API: fit, recommend, similar_items, save, load, in the identifiers of the log."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import caged
from caged.config import to_dict
from caged.errors import ConfigError, DataError, RunError
from caged.models import METHODS
from tests.conftest import ITEMS, Pair

TINY = {"embedding_size": 4, "epochs": 3, "batch_size": 128, "device": "cpu"}
KINDS = {
    "text": (str, str),
    "integers": (lambda user: 5 + 3 * int(user[1:]), lambda item: 10**12 + int(item[1:])),
    "unicode": (lambda user: f"用户 {user}🙂", lambda item: f"Ärtikel\t{item}"),
    "mixed": (lambda user: int(user[1:]), str),
}


Trained = tuple[caged.Recommender, caged.Split]


def interactions(pairs: list[Pair], kind: str = "text") -> caged.Interactions:
    of_user, of_item = KINDS[kind]
    return caged.Interactions.from_ids([of_user(user) for user, _ in pairs], [of_item(item) for _, item in pairs])


def fitted(data: caged.Interactions, model: caged.Recommender | None = None) -> Trained:
    split = caged.split(data, seed=1)
    return (model or caged.LightGCN(**TINY)).fit(split.train, valid=split.valid), split


@pytest.fixture(scope="module")
def trained(pairs: list[Pair]) -> Trained:
    return fitted(interactions(pairs))


# ---------------------------------------------------------------- the round trip


@pytest.mark.parametrize("kind", KINDS)
def test_fit_recommend_save_load(kind: str, pairs: list[Pair], tmp_path: Path) -> None:
    model, split = fitted(interactions(pairs, kind))
    of_user, of_item = KINDS[kind]
    users = [of_user("u07"), of_user("u03")]
    table = model.recommend(users, k=5)
    assert table.column_names == ["user_id", "item_id", "score", "rank"]
    assert sorted(set(table["user_id"].to_pylist())) == sorted(users)
    assert table["rank"].to_pylist() == [1, 2, 3, 4, 5] * 2
    assert set(table["item_id"].to_pylist()) <= {of_item(item) for _, item in pairs}
    assert split.valid is not None
    seen = {tuple(row.values()) for part in (split.train, split.valid) for row in part.to_arrow().to_pylist()}
    assert not seen & {(row["user_id"], row["item_id"]) for row in table.to_pylist()}

    loaded = caged.load(model.save(tmp_path / "model"), device="cpu")
    assert loaded.recommend(users, k=5).equals(table)
    assert loaded.recommend(k=ITEMS).equals(model.recommend(k=ITEMS))
    item = of_item("i05")
    assert loaded.similar_items(item, k=3).equals(model.similar_items(item, k=3))
    assert (loaded.name, loaded.config) == (model.name, model.config)


def test_all_forms_of_asking_for_users(trained: Trained) -> None:
    model, _ = trained
    expected = model.recommend(["u03", "u07"], k=4)
    for users in (("u03", "u07"), np.array(["u03", "u07"]), pa.array(["u03", "u07", "u03"]), {"u03": 1, "u07": 2}):
        assert model.recommend(users, k=4).equals(expected)
    assert sorted(set(model.recommend({"u03", "u07"}, k=4)["user_id"].to_pylist())) == ["u03", "u07"]
    alone = model.recommend("u03", k=4)  # its scores are a product of another shape: equal up to rounding
    assert alone["item_id"].to_pylist() == expected["item_id"].to_pylist()[:4]
    everyone = model.recommend(k=4)
    assert len(set(everyone["user_id"].to_pylist())) == 60


def test_one_integer_user(pairs: list[Pair]) -> None:
    model, _ = fitted(interactions(pairs, "integers"), caged.MostPopular())
    assert model.recommend(5, k=2).equals(model.recommend([5], k=2))
    assert model.recommend(np.int64(5), k=2).equals(model.recommend([5], k=2))


def test_seen_items_can_be_kept(trained: Trained) -> None:
    model, split = trained
    whole = model.recommend("u03", k=ITEMS, exclude_seen=False)
    assert sorted(whole["item_id"].to_pylist()) == split.train.item_ids.values.to_pylist()
    assert len(model.recommend("u03", k=ITEMS)) < ITEMS


def test_the_same_seed_gives_the_same_model(pairs: list[Pair]) -> None:
    def scores(seed: int) -> Any:
        return fitted(interactions(pairs), caged.LightGCN(seed=seed, **TINY))[0].recommend(k=5)

    assert scores(3).equals(scores(3))
    assert not scores(3).equals(scores(4))


def test_the_order_of_the_log_does_not_matter(pairs: list[Pair], trained: Trained) -> None:
    again, _ = fitted(interactions(pairs[::-1]))
    assert again.recommend(k=5).equals(trained[0].recommend(k=5))


def test_the_command_line_and_python_agree(log_csv: Path, finished_run: Path) -> None:
    split = caged.split(caged.Interactions.read(log_csv), seed=1)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = caged.LightGCN(**{**TINY, "epochs": 2}).fit(split.train, valid=split.valid)
    finally:
        torch.set_num_threads(before)
    assert model.recommend(k=5).equals(caged.load(finished_run, device="cpu").recommend(k=5))


# ---------------------------------------------------------------- similar items


def test_similar_items(trained: Trained) -> None:
    model, split = trained
    table = model.similar_items(["i05", "i00"], k=ITEMS - 1)
    assert table.column_names == ["item_id", "similar_item_id", "score", "rank"]
    vectors = model.artefact.method.scorer().vectors
    assert vectors is not None
    items = vectors.items.double()
    cosine = torch.nn.functional.normalize(items, dim=1) @ torch.nn.functional.normalize(items, dim=1).T
    rows = split.train.item_ids
    for row in table.to_pylist():
        one, other = rows.rows([row["item_id"], row["similar_item_id"]])
        assert row["score"] == pytest.approx(float(cosine[one, other]), abs=1e-5)
        assert one != other
    for item in ("i00", "i05"):
        own = [row for row in table.to_pylist() if row["item_id"] == item]
        assert [row["rank"] for row in own] == list(range(1, ITEMS))
        assert [row["score"] for row in own] == sorted((row["score"] for row in own), reverse=True)


def test_similar_items_needs_vectors_and_known_items(trained: Trained, pairs: list[Pair]) -> None:
    with pytest.raises(DataError, match=r"1 of the items asked for are unknown, e.g. 'nothing'"):
        trained[0].similar_items(["i05", "nothing"])
    with pytest.raises(ConfigError, match="k is 40"):
        trained[0].similar_items("i05", k=ITEMS)
    popular, _ = fitted(interactions(pairs), caged.MostPopular())
    with pytest.raises(ConfigError, match="mostpop has neither item vectors nor item-item weights"):
        popular.similar_items("i05")


# ---------------------------------------------------------------- validation


def test_fit_without_valid_carves_and_says_so(pairs: list[Pair], caplog: pytest.LogCaptureFixture) -> None:
    data = interactions(pairs)
    with caplog.at_level(logging.WARNING, logger="caged"):
        model = caged.LightGCN(**TINY).fit(data)
    [message] = caplog.messages
    carved = model.artefact.valid
    assert carved is not None
    assert f"1/8 of the interactions ({len(carved)}) are held out" in message
    assert len(carved) == sum(data.user_degrees // 8)
    assert len(carved) + len(model.artefact.train) == len(data)
    shown = {(row["user_id"], row["item_id"]) for row in model.recommend(k=ITEMS).to_pylist()}
    assert not shown & {(user, item) for user, item in pairs}  # what was carved is seen, too


def test_a_closed_form_needs_no_validation(pairs: list[Pair], caplog: pytest.LogCaptureFixture) -> None:
    model = caged.MostPopular().fit(interactions(pairs))
    assert caplog.messages == []
    assert model.artefact.valid is None
    assert len(model.artefact.train) == len(pairs)


def test_parts_may_bring_their_own_ids(pairs: list[Pair]) -> None:
    """Separately read parts: users and items of both are known afterwards."""
    train = interactions([pair for pair in pairs if pair[0] != "u59"])
    valid = interactions([*[pair for pair in pairs if pair[0] == "u59"], ("u00", "brand new")])
    model = caged.LightGCN(**TINY).fit(train, valid=valid)
    assert model.artefact.train.item_count == ITEMS + 1
    assert len(model.recommend("u59", k=3)) == 3


def test_train_and_valid_must_name_the_same_users_and_items(
    pairs: list[Pair], caplog: pytest.LogCaptureFixture
) -> None:
    train = interactions(pairs)
    with pytest.raises(DataError, match="valid has no user in common with train"):
        caged.LightGCN(**TINY).fit(train, valid=interactions([("stranger", pairs[0][1])]))
    with pytest.raises(DataError, match="'user_id' of valid holds integers"):
        caged.LightGCN(**TINY).fit(train, valid=caged.Interactions.from_ids([1], ["x"]))
    known = ("brand new", pairs[0][1])
    valid = interactions([(pairs[0][0], "brand new item"), known, ("another", pairs[0][1])])
    caged.LightGCN(**TINY).fit(train, valid=valid)
    assert "only 1 of the 3 users of valid (33.3%) are in train" in caplog.text


def test_train_and_valid_must_not_overlap(pairs: list[Pair]) -> None:
    with pytest.raises(DataError, match="train and valid share 2 interactions"):
        caged.LightGCN(**TINY).fit(interactions(pairs), valid=interactions(pairs[:2]))


def test_too_little_to_carve_from() -> None:
    data = caged.Interactions.from_ids(["a", "a", "b"], ["x", "y", "x"])
    with pytest.raises(DataError, match="no validation part can be carved"):
        caged.LightGCN(**TINY).fit(data)


def test_k_of_fit_decides_what_is_watched(pairs: list[Pair]) -> None:
    records: list[dict[str, Any]] = []

    class Watch:
        def epoch(self, record: dict[str, Any]) -> None:
            records.append(record)

    split = caged.split(interactions(pairs), seed=1)
    caged.LightGCN(**TINY).fit(split.train, valid=split.valid, k=7, observers=[Watch()])
    assert [list(record["validation"]) for record in records] == [["recall@7"]] * 3
    with pytest.raises(ConfigError, match="k is 41"):
        caged.LightGCN(**TINY).fit(split.train, valid=split.valid, k=41)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: caged.LightGCN(embeding_size=3), "unknown key 'embeding_size'.*did you mean 'embedding_size'"),
        (lambda: caged.LightGCN(epoch=3), "did you mean 'epochs'"),
        (lambda: caged.LightGCN(layers=-1), "method.layers is -1; it must be >= 0"),
        (lambda: caged.LightGCN(epochs="many"), "train.epochs is 'many'"),
        (lambda: caged.Recommender("lightgnc"), "unknown method 'lightgnc'.*did you mean 'lightgcn'"),
        (caged.Recommender, "no method given"),
    ],
)
def test_unknown_options_and_methods(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


def test_a_model_that_is_not_fitted_says_so(tmp_path: Path) -> None:
    model = caged.LightGCN()
    assert "not fitted" in repr(model)
    for use in (lambda: model.recommend(["a"]), lambda: model.similar_items("a"), lambda: model.save(tmp_path / "m")):
        with pytest.raises(ConfigError, match=r"this lightgcn model is not fitted; call \.fit"):
            use()
    assert not (tmp_path / "m").exists()


def test_unknown_users(trained: Trained) -> None:
    model, _ = trained
    with pytest.raises(DataError, match=r"2 of the users asked for are unknown, e.g. 'zoe'"):
        model.recommend(["zoe", "abe", "u03"])
    assert model.recommend(["zoe", "u03"], k=3, unknown="skip").equals(model.recommend(["u03"], k=3))
    popular = model.recommend(["zoe", "u03", "abe"], k=3, unknown="popular")
    assert popular["user_id"].to_pylist() == ["zoe"] * 3 + ["u03"] * 3 + ["abe"] * 3
    with pytest.raises(ConfigError, match="allowed: error, popular, skip"):
        model.recommend(["zoe"], unknown="ignore")  # type: ignore[arg-type]
    assert len(model.recommend(["zoe"], k=3, unknown="skip")) == 0


def test_k_must_lie_within_the_catalogue(trained: Trained) -> None:
    for k in (0, ITEMS + 1):
        with pytest.raises(ConfigError, match=f"k is {k}; allowed are 1..40"):
            trained[0].recommend(["u03"], k=k)


def test_saving_refuses_a_folder_with_something_in_it(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(RunError, match="is not empty"):
        trained[0].save(tmp_path)
    with pytest.raises(RunError, match="Not a directory"):
        trained[0].save(tmp_path / "notes" / "model")
    with pytest.raises(RunError, match="holds no trained model"):
        caged.load(tmp_path)


def test_loading_gives_the_class_that_was_asked_for(trained: Trained, tmp_path: Path) -> None:
    folder = trained[0].save(tmp_path / "model")
    for load in (caged.load, caged.Recommender.load, caged.LightGCN.load, caged.MostPopular.load):
        assert type(load(folder, device="cpu")) is caged.LightGCN  # whatever was asked, it is a LightGCN

    class Mine(caged.LightGCN):
        pass

    assert type(Mine.load(folder)) is Mine
    assert repr(caged.load(folder)).startswith("LightGCN('lightgcn', ")


def test_a_saved_model_keeps_what_it_was_trained_with(pairs: list[Pair], tmp_path: Path) -> None:
    model, _ = fitted(interactions(pairs), caged.LightGCN(seed=7, learning_rate=0.02, **TINY))
    folder = model.save(tmp_path / "model")
    loaded = caged.load(folder, device="cpu")
    assert (loaded.seed, loaded.train_config, loaded.config) == (7, model.train_config, model.config)
    assert loaded.train_config.learning_rate == 0.02

    manifest = json.loads((folder / "checkpoint.json").read_text())
    for key in ("seed", "train"):  # as folders were before they were kept
        del manifest[key]
    (folder / "checkpoint.json").write_text(json.dumps(manifest))
    old = caged.load(folder, device="cpu")
    assert (old.seed, old.train_config, old.config) == (1, caged.LightGCN().train_config, model.config)
    assert old.recommend(k=5).equals(model.recommend(k=5))


def test_a_run_is_loaded_with_what_it_was_trained_with(finished_run: Path) -> None:
    spec = json.loads((finished_run / "run.json").read_text())["spec"]
    for folder in (finished_run, finished_run / "checkpoint"):
        model = caged.load(folder, device="cpu")
        assert type(model) is caged.LightGCN
        assert model.seed == spec["seed"]
        assert to_dict(model.train_config) == spec["config"]["train"]
        assert to_dict(model.config) == spec["config"]["method"]
    assert model.train_config != caged.LightGCN().train_config


# ---------------------------------------------------------------- the classes that the registry makes


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_its_public_class(name: str) -> None:
    known = METHODS[name]
    assert known.public is not None
    public = getattr(caged, known.public)
    assert public is getattr(caged, known.public)
    assert issubclass(public, caged.Recommender)
    assert (public.__name__, public.__module__, public.method_name) == (known.public, "caged", name)
    assert pickle.loads(pickle.dumps(public)) is public
    model = public(seed=3, epochs=2)
    assert (model.name, model.config, model.seed) == (name, known.config(), 3)
    assert type(pickle.loads(pickle.dumps(model))) is public
    assert repr(model).startswith(f"{known.public}('{name}', ")


def test_a_class_is_of_one_method() -> None:
    with pytest.raises(TypeError):
        caged.LightGCN("mostpop")
    with pytest.raises(TypeError, match="method"):
        caged.LightGCN(method="mostpop")


# ---------------------------------------------------------------- what fit takes


def test_fit_takes_a_frame(pairs: list[Pair]) -> None:
    frame = pd.DataFrame(pairs, columns=["user_id", "item_id"])
    expected = caged.LightGCN(**TINY).fit(caged.Interactions.from_frame(frame)).recommend(k=5)
    assert caged.LightGCN(**TINY).fit(frame).recommend(k=5).equals(expected)
    assert caged.LightGCN(**TINY).fit(pa.Table.from_pandas(frame)).recommend(k=5).equals(expected)


def test_fit_takes_frames_of_both_parts(trained: Trained) -> None:
    _, split = trained
    assert split.valid is not None
    again = caged.LightGCN(**TINY).fit(split.train.to_arrow(), valid=split.valid.to_arrow())
    assert again.artefact.train.fingerprint == split.train.fingerprint
    assert again.artefact.valid is not None
    assert again.artefact.valid.fingerprint == split.valid.fingerprint


def test_fit_takes_a_split_without_its_test(trained: Trained) -> None:
    model, split = trained
    assert caged.LightGCN(**TINY).fit(split).recommend(k=5).equals(model.recommend(k=5))
    with pytest.raises(ConfigError, match=r"train is a Split, .* leave valid out"):
        caged.LightGCN(**TINY).fit(split, valid=split.valid)


def test_fit_says_what_it_takes() -> None:
    for wrong in ("log.csv", [("u", "i")], None):
        with pytest.raises(ConfigError, match=r"train is .*; give Interactions or a frame with the columns"):
            caged.LightGCN(**TINY).fit(wrong)
    with pytest.raises(DataError, match="no column 'user_id'"):
        caged.LightGCN(**TINY).fit(pd.DataFrame({"user": [1], "item_id": [2]}))


def test_a_small_catalogue_is_fitted(pairs: list[Pair], caplog: pytest.LogCaptureFixture) -> None:
    few = [(user, item) for user, item in pairs if item < "i12"]
    split = caged.split(interactions(few))
    caged.LightGCN(**TINY).fit(split)
    assert "there are 12 items, so the epoch is chosen by recall@6" in caplog.text
    with pytest.raises(ConfigError, match="k is 13"):
        caged.LightGCN(**TINY).fit(split, k=13)


def test_a_neutral_method_says_so(trained: Trained, caplog: pytest.LogCaptureFixture) -> None:
    caged.AdjNorm(**TINY).fit(trained[1])
    assert "adjnorm at method.r=0.5 is LightGCN" in caplog.text
