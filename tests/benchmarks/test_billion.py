"""The benchmark of a billion interactions, at a small size: what its record says, stopping and going on."""

from __future__ import annotations

import json

import pytest

from benchmarks import billion
from benchmarks.billion import main
from caged.graph import block_sampling

SMALL = ["--users", "600", "--items", "400", "--interactions", "10k", "--k", "8", "--sampled-users", "50"]


def run(folder, *options):
    out = folder / "out" / "record.json"
    main([*SMALL, "--out", str(out), *options])
    return json.loads(out.read_text())


@pytest.fixture
def in_blocks(monkeypatch):
    monkeypatch.setattr(block_sampling, "BLOCKS_ABOVE", 0)
    monkeypatch.setattr(block_sampling, "BLOCK_TRIPLES", 4096)


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("method", ["lightgcn", "softmax"])
def test_a_record_says_what_was_trained_and_how_long_each_phase_took(tmp_path, capsys, method):
    record = run(tmp_path, "--method", method, "--epochs", "3", "--learning-rate", "0.02")
    log = record["asked"]["log"]
    assert log["training_interactions"] + log["held_out_interactions"] == 10_000
    [call] = record["calls"]
    assert call["batch_size"] == 2048
    assert set(call["phases_s"]) == set(call["peak_bytes"]) == {"generate", "build", "sample"}
    assert [line["epoch"] for line in record["epochs"]] == [1, 2, 3]
    assert record["epochs"][-1]["loss"]["total"] < record["epochs"][0]["loss"]["total"]
    assert all(0 <= line["validation"]["recall@20"] <= 1 and line["peak_bytes"] > 0 for line in record["epochs"])
    assert "epoch 3" in capsys.readouterr().out


@pytest.mark.usefixtures("in_blocks")
def test_a_stopped_training_goes_on_as_if_it_had_not_been(tmp_path, monkeypatch, capsys):
    whole = run(tmp_path / "whole", "--epochs", "3")
    stops = iter([False, True])
    with monkeypatch.context() as patch:
        patch.setattr(billion.Watch, "lacks", lambda self, seconds: next(stops))
        stopped = run(tmp_path, "--epochs", "3", "--folder", str(tmp_path / "kept"), "--minutes", "9")
    assert "would not end within 9 minutes; call again to go on" in capsys.readouterr().err
    assert len(stopped["epochs"]) == 2
    resumed = run(tmp_path, "--epochs", "3", "--folder", str(tmp_path / "kept"))
    assert [call["first_epoch"] for call in resumed["calls"]] == [1, 3]
    for mine, other in zip(resumed["epochs"], whole["epochs"], strict=True):
        assert mine["loss"] == other["loss"]
        assert mine["validation"] == other["validation"]


def test_another_training_in_the_folder_is_refused(tmp_path, capsys):
    run(tmp_path, "--epochs", "1", "--folder", str(tmp_path / "kept"))
    with pytest.raises(SystemExit) as end:
        run(tmp_path, "--epochs", "1", "--folder", str(tmp_path / "kept"), "--seed", "2")
    assert end.value.code == 2
    assert "holds a training with another seed" in capsys.readouterr().err


@pytest.mark.skipif(billion.torch.cuda.is_available(), reason="where there is a GPU, it is taken")
def test_a_device_that_is_not_there_is_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        run(tmp_path, "--device", "cuda")
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "device 'cuda' was asked for but torch sees no CUDA device; use --device cpu or auto\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_time_runs_out():
    watch = billion.Watch(billion.torch.device("cpu"), minutes=1.0)
    assert not watch.lacks(50)
    assert watch.lacks(61)
    assert not billion.Watch(billion.torch.device("cpu"), minutes=None).lacks(1e9)


def test_counts_are_written_as_people_write_them(capsys):
    with pytest.raises(SystemExit):
        main(["--users", "many", "--out", "x.json"])
    assert "it is 'many'; write a whole number, such as 2000, 20M or 1.5B" in capsys.readouterr().err
