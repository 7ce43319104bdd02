"""`caged adjust`: of a run, of lists, of vectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caged as package
from caged.data.vector_files import NamedVectors, read_vectors, write_vectors
from caged.evaluation.adjust import GRID
from tests.cli.invoke import caged, contents, refused, refused_without_a_trace, train


@pytest.fixture(scope="module")
def adjusted_run(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adjusted") / "run"
    outcome = caged("adjust", finished_run, "--strength", "0.5", "-k", "5", "-o", folder)
    assert outcome.code == 0, outcome.err
    return folder


@pytest.fixture(scope="module")
def parts(log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of `finished_run`, split as that run split it."""
    folder = tmp_path_factory.mktemp("parts") / "split"
    outcome = caged("data", "split", log_csv, "-o", folder, "--seed", "1")
    assert outcome.code == 0, outcome.err
    return folder


def metrics(folder: Path) -> dict[str, float]:
    values: dict[str, float] = json.loads((folder / "metrics.json").read_text())["metrics"]
    return values


def test_an_adjusted_run_is_a_run_like_any_other(finished_run: Path, adjusted_run: Path) -> None:
    again = json.loads(caged("evaluate", adjusted_run, "--json").out)
    assert again["metrics"] == metrics(adjusted_run)
    assert metrics(adjusted_run)["arp@20"] < metrics(finished_run)["arp@20"]
    assert caged("recommend", adjusted_run, "--users", "u01", "-k", "3").code == 0
    compared = caged("compare", finished_run, adjusted_run)
    assert compared.code == 0, compared.err
    assert "lightgcn adjusted" in compared.out
    assert (adjusted_run / "report.html").exists()
    resumed = caged("train", "--resume", adjusted_run)
    assert resumed.code == 0, resumed.err


def test_recommendations_are_those_of_the_formula(finished_run: Path, adjusted_run: Path) -> None:
    """Scores of the run, adjusted by hand for one user."""
    plain = package.load(finished_run).recommend(["u01"], 40).to_pydict()
    scores = dict(zip(plain["item_id"], plain["score"], strict=True))
    train_part = package.load(finished_run).artefact.train
    user = train_part.user_ids.values.to_pylist().index("u01")
    owned = set(train_part.items[train_part.users == user].tolist())
    every = package.load(finished_run).recommend(["u01"], 40, exclude_seen=False).to_pydict()
    rows = {item: row for row, item in enumerate(train_part.item_ids.values.to_pylist())}
    spread = np.std(
        [score for item, score in zip(every["item_id"], every["score"], strict=True) if rows[item] not in owned]
    )
    wanted = sorted(
        scores, key=lambda item: -(scores[item] - 0.5 * spread * np.log1p(train_part.item_degrees[rows[item]]))
    )
    found = package.load(adjusted_run).recommend(["u01"], 10)["item_id"].to_pylist()
    assert found == wanted[:10]


def test_the_strength_is_chosen_on_validation_and_test_is_only_reported(finished_run: Path) -> None:
    said = json.loads(caged("adjust", finished_run, "--keep", "90%", "-k", "5", "--json").out)
    tried = dict(said["tried"])
    assert tried[0.0] > 0
    assert all(tried[strength] >= 0.9 * tried[0.0] for strength in tried if strength <= said["strength"])
    following = min((one for one in tried if one > said["strength"]), default=None)
    assert following is None or tried[following] < 0.9 * tried[0.0]
    assert said["changes"]["valid"]["recall@5"]["after"] == tried[said["strength"]]
    assert set(said["changes"]) == {"valid", "test"}


def test_the_curve_has_every_strength_and_both_parts(finished_run: Path, tmp_path: Path) -> None:
    outcome = caged("adjust", finished_run, "--curve", "-k", "5", "--json", "--html", tmp_path / "curve.html")
    said = json.loads(outcome.out)
    assert {part: [point["strength"] for point in points] for part, points in said["curve"].items()} == {
        "valid": list(GRID),
        "test": list(GRID),
    }
    page = (tmp_path / "curve.html").read_text()
    assert "less popularity, at what price?" in page
    assert "Every strength, on validation" in page


def test_without_out_nothing_is_written(finished_run: Path) -> None:
    before = contents(finished_run)
    outcome = caged("adjust", finished_run, "--strength", "0.2", "-k", "5")
    assert outcome.code == 0
    assert "recall@5 of niche items goes from" in outcome.out
    assert contents(finished_run) == before


# ---------------------------------------------------------------- anybody's lists


@pytest.fixture(scope="module")
def lists(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lists") / "recs.parquet"
    pq.write_table(package.load(finished_run).recommend(k=40, exclude_seen=False), path)
    return path


def test_whole_lists_of_a_run_end_like_the_run(lists: Path, parts: Path, adjusted_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.csv"
    outcome = caged("adjust", lists, "--train", parts / "train.parquet", "--strength", "0.5", "-k", "5", "-o", out)
    assert outcome.code == 0, outcome.err
    written = [line.split(",") for line in out.read_text().replace('"', "").splitlines()]
    assert written[0] == ["user_id", "item_id", "score", "rank"]
    found = [row[1] for row in written if row[0] == "u03"]
    model = package.load(adjusted_run)
    wanted = model.recommend(["u03"], 40)["item_id"].to_pylist()
    # The run also leaves out what is in its validation part; the file knows nothing of that.
    assert [item for item in found if item in wanted] == [item for item in wanted if item in found]
    assert len(found) == 5


def test_lists_choose_on_a_validation_file(lists: Path, parts: Path) -> None:
    said = json.loads(
        caged(
            "adjust", lists, "--train", parts / "train.parquet", "--valid", parts / "valid.parquet",
            "--test", parts / "test.parquet", "-k", "5", "--json",
        ).out
    )  # fmt: skip
    assert said["keep"] == 0.99
    assert set(said["changes"]) == {"valid", "test"}


def test_a_quota_raises_the_share_of_niche_items(lists: Path, parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "quota.parquet"
    train_file = parts / "train.parquet"
    assert (
        caged("adjust", lists, "--train", train_file, "--form", "quota", "--strength", "0.6", "-k", "5", "-o", out).code
        == 0
    )
    groups = package.Interactions.read(train_file).item_groups
    ids = package.Interactions.read(train_file).item_ids
    rows = ids.rows(pq.read_table(out)["item_id"].combine_chunks())
    assert groups.niche[rows].reshape(-1, 5).sum(axis=1).min() >= 3


def test_short_lists_are_refused(lists: Path, parts: Path) -> None:
    outcome = caged("adjust", lists, "--train", parts / "train.parquet", "--strength", "0.5", "-k", "20")
    refused(outcome, "hold 40 items (median)", "at least 100 candidates")


# ---------------------------------------------------------------- anybody's vectors


@pytest.mark.parametrize("suffix", [".parquet", ".safetensors"])
def test_vectors_end_like_the_run(
    finished_run: Path, adjusted_run: Path, parts: Path, tmp_path: Path, suffix: str
) -> None:
    fitted = package.load(finished_run).artefact
    vectors = fitted.method.scorer().vectors
    files = tmp_path / f"u{suffix}", tmp_path / f"i{suffix}"
    write_vectors(files[0], "user_id", NamedVectors(fitted.train.user_ids.values, vectors.users.detach().numpy()))
    write_vectors(files[1], "item_id", NamedVectors(fitted.train.item_ids.values, vectors.items.detach().numpy()))
    outcome = caged(
        "adjust", files[0], "--item-vectors", files[1], "--train", parts / "train.parquet",
        "--strength", "0.5", "-k", "5", "-o", tmp_path / "new",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    users = read_vectors(tmp_path / "new" / f"users{suffix}", "user_id")
    items = read_vectors(tmp_path / "new" / f"items{suffix}", "item_id")
    wanted = package.load(adjusted_run).artefact.scorer().vectors
    np.testing.assert_allclose(users.vectors @ items.vectors.T, (wanted.users @ wanted.items.T).detach(), atol=1e-6)


# ---------------------------------------------------------------- wrong input


def test_wrong_wishes_are_one_sentence(finished_run: Path, parts: Path, lists: Path, tmp_path: Path) -> None:
    def fails(*arguments: str | Path, words: str) -> None:
        refused_without_a_trace(tmp_path, ["adjust", *map(str, arguments)], words)

    fails(finished_run, "--keep", "99%", "--strength", "0.5", words="use only one of them")
    fails(finished_run, "--keep", "150%", words="at most 100%")
    fails(finished_run, "--keep", "most", words="such as 99% or 0.99")
    fails(finished_run, "--strength", "1.5", words="must lie between 0 and 1")
    fails(finished_run, "--form", "degrees", words="did you mean 'degree'")
    fails(finished_run, "--form", "quota", "--strength", "0.5", "-k", "5", words="adjust the lists instead")
    fails(finished_run, "--train", parts / "train.parquet", words="a run knows its own data")
    fails(lists, words="give --train")
    fails(lists, "--train", parts / "train.parquet", "-k", "5", words="no validation part to choose the strength on")
    fails(lists, "--train", parts / "train.parquet", "--form", "norm", "-k", "5", words="needs vectors")
    fails(lists, "--train", parts / "train.parquet", "-o", "x.txt", words="must end in .parquet or .csv")
    fails(tmp_path / "nothing", "--train", parts / "train.parquet", words="nothing does not exist")


def test_an_adjusted_run_is_not_adjusted_again(adjusted_run: Path) -> None:
    refused(caged("adjust", adjusted_run, "--strength", "0.1"), "is already adjusted")


def test_a_run_without_validation_wants_a_strength(released: Path, tmp_path: Path) -> None:
    train(released, tmp_path / "run", "--protocol", "paper")
    assert "no validation part to choose the strength on" in caged("adjust", tmp_path / "run").error
    assert caged("adjust", tmp_path / "run", "--strength", "0.2", "-k", "5").code == 0


def test_methods_without_vectors_are_adjusted_by_degree(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", method="ease")
    outcome = caged("adjust", tmp_path / "run", "--strength", "0.5", "-k", "5", "-o", tmp_path / "new")
    assert outcome.code == 0, outcome.err
    assert metrics(tmp_path / "new")["arp@20"] < metrics(tmp_path / "run")["arp@20"]
    assert "needs vectors" in caged("adjust", tmp_path / "run", "--form", "norm", "--strength", "0.5").error


# ---------------------------------------------------------------- Python


def test_a_model_is_adjusted_saved_and_loaded(log_csv: Path, tmp_path: Path) -> None:
    model = package.LightGCN(embedding_size=4, epochs=2, device="cpu").fit(package.Interactions.read(log_csv))
    new = model.adjusted(keep=0.9, k=5)
    assert model.artefact.adjustment is None
    assert new.artefact.adjustment is not None
    stronger = model.adjusted(strength=1.0)
    stronger.save(tmp_path / "model")
    assert package.load(tmp_path / "model").recommend(k=5).equals(stronger.recommend(k=5))
    assert not stronger.recommend(k=5).equals(model.recommend(k=5))
    assert model.adjusted(strength=0.0).recommend(k=5).equals(model.recommend(k=5))
    with pytest.raises(package.CagedError, match="already adjusted"):
        new.adjusted()


def test_lists_are_adjusted_in_python(lists: Path, parts: Path) -> None:
    found = package.adjust(
        pq.read_table(lists), parts / "train.parquet", valid=parts / "valid.parquet", test=parts / "test.parquet", k=5
    )
    assert found.table.column_names == ["user_id", "item_id", "score", "rank"]
    assert isinstance(found.table, pa.Table)
    assert "On test, recall@5 of niche items" in str(found) or found.strength == 0
    with pytest.raises(package.CagedError, match=r"model\.adjusted"):
        package.adjust(package.LightGCN(), parts / "train.parquet")


def test_an_adjusted_run_is_recorded_under_a_name_of_its_own(finished_run: Path, tmp_path: Path) -> None:
    records = tmp_path / "results"
    outcome = caged("adjust", finished_run, "--strength", "0.5", "-o", tmp_path / "out", "--record", records)
    assert outcome.code == 0, outcome.err
    (path,) = records.rglob("*.json")
    assert path.relative_to(records).parts[1:] == ("honest", "lightgcn-adjusted", "seed1.json")
    written = json.loads(path.read_text())
    assert (written["status"], written["adjustment"]["strength"]) == ("finished", 0.5)
    assert written["metrics"] == metrics(tmp_path / "out")
    assert written["memory"]["process_gib"] > 0
    assert str(finished_run.parent) not in path.read_text()


def test_a_record_needs_a_run_that_is_written(finished_run: Path, tmp_path: Path) -> None:
    refused_without_a_trace(
        tmp_path,
        ["adjust", str(finished_run), "--strength", "0.5", "--record", "results"],
        "--record needs a run that is written",
    )
    refused_without_a_trace(
        tmp_path,
        ["adjust", str(finished_run), "--strength", "0.5", "-o", "out", "--variant", "x"],
        "--variant works only with --record",
    )


@pytest.mark.parametrize("option", ["--html", "--out"])
def test_nothing_takes_the_place_of_what_is_read(tmp_path: Path, option: str) -> None:
    for name in ("recs.csv", "train.csv", "valid.csv"):
        (tmp_path / name).write_text("user_id,item_id\n")
    for name in ("recs.csv", "valid.csv"):
        arguments = ["adjust", "recs.csv", "--train", "train.csv", "--valid", "valid.csv", option, name]
        refused_without_a_trace(tmp_path, arguments, f"cannot write {option} {name}: the same command reads it")
