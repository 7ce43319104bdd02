"""The record of a search, and the preset that comes from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caged.errors import ConfigError, RunError
from caged.products.tune.finals import Finals
from caged.products.tune.record import check_record, preset_of_record, read_record, write_record
from caged.runs.presets import preset_names, tuned_on
from caged.runs.spec import resolve
from tests.products.tune.answered import Answered, on_test

CLONE = Path(__file__).parents[3]
RECORDS = CLONE / "results" / "tunes"
SHIPPED = CLONE / "src" / "caged" / "runs" / "presets"


def test_a_record_holds_every_trial_and_no_path_of_the_machine(answered: Answered, tmp_path: Path) -> None:
    answer = answered(trials=3, tests=Finals(on_test(lightgcn=[0.3, 0.5], ips=[0.4, 0.6])))
    path = write_record(answer, tmp_path / "results")
    assert path == tmp_path / "results" / "tunes" / "log.json"
    found = read_record(path)
    assert found["command"] == "caged tune --data log.csv --methods lightgcn,ips --out t"
    assert str(tmp_path) not in path.read_text(encoding="utf-8")
    assert answer.winner is not None
    assert (found["winner"], found["seed"], found["dataset"]) == (answer.winner.method, 1, "log")
    assert found["calls"][0]["hardware"]["cpu"] == "A Processor"
    ips = found["methods"]["ips"]
    assert [trial["number"] for trial in ips["record"]] == [0, 1, 2]
    assert all(trial["metrics"].keys() == {"recall@20", "recall@20/niche"} for trial in ips["record"])
    assert [one["metrics"]["recall@20"] for one in ips["test"]] == [0.4, 0.6]
    assert write_record(answer, tmp_path / "results", "niche").name == "log-niche.json"


def test_a_record_becomes_a_preset_with_the_chosen_values(answered: Answered, tmp_path: Path) -> None:
    answer = answered(trials=4, tests=Finals(on_test(lightgcn=[0.3], ips=[0.4])))
    preset = tmp_path / "tuned_log.toml"
    preset.write_text(preset_of_record(read_record(write_record(answer, tmp_path)), "log.json"), encoding="utf-8")
    assert "log.json" in preset.read_text(encoding="utf-8").partition("[")[0]
    for chosen in answer.choice.methods:
        assert chosen.trial is not None
        wanted = answer.settings.spec(chosen.method, chosen.trial.values)
        spec = resolve("x", chosen.method, presets=[str(preset)])
        assert (spec.config, spec.train) == (wanted.config, wanted.train)
        assert tuned_on(str(preset), chosen.method) == "log"
    rates = {resolve("x", name, presets=[str(preset)]).train.learning_rate for name in ("lightgcn", "ips")}
    assert len(rates) == 2  # each method has its own


def test_a_search_without_tests_gives_no_preset(answered: Answered, tmp_path: Path) -> None:
    record = read_record(write_record(answered(), tmp_path))
    with pytest.raises(RunError, match="is not finished"):
        preset_of_record(record, "log.json")


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(RunError, match="not the record of a search"):
        read_record(path)
    path.write_text(json.dumps({"dataset": "x", "methods": {}, "command": "", "format": 0}))
    with pytest.raises(RunError, match="another format"):
        read_record(path)


def test_a_record_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="variant 'a b'"):
        check_record(tmp_path, "a b")
    with pytest.raises(ConfigError, match="say where to write it with --record"):
        check_record(None, "niche")
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="cannot write records below"):
        check_record(tmp_path / "file", None)
    check_record(tmp_path / "new" / "results", "niche")
    assert not (tmp_path / "new").exists()


def test_every_preset_that_is_shipped_has_its_record() -> None:
    tuned = {name for name in preset_names() if name.startswith("tuned_")}
    records = {f"tuned_{path.stem.replace('-', '_')}": path for path in RECORDS.glob("*.json")}
    assert tuned <= records.keys()
    for name in tuned:
        told = preset_of_record(read_record(records[name]), f"results/tunes/{records[name].name}")
        assert (SHIPPED / f"{name}.toml").read_text(encoding="utf-8") == told
