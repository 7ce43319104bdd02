from __future__ import annotations

import pytest

from caged.errors import ConfigError
from caged.products.study.possible import check_folder, check_runs
from tests.products.study.plans import SMALL, plan_of


def test_runs_that_can_be_made_pass(tmp_path):
    plan = plan_of(SMALL, tmp_path)
    check_runs(plan, plan.runs)


@pytest.mark.parametrize(
    ("before", "after", "row", "said"),
    [
        ('method = "ease"', 'method = "eaze"', "ease", "did you mean 'ease'"),
        ('presets = ["epinions"]', 'presets = ["epinion"]', "lightgcn", "did you mean 'epinions'"),
        ("method.embedding_size=32", "method.embeding_size=32", "wide", "did you mean 'method.embedding_size'"),
        ("values = [0.5, 2]", "values = [-1]", "scale--1", "layer_scale is -1"),
        ('method = "galore"', 'method = "softmax"', "galore", "'softmax' has no such stage"),
        (
            'init = "lightgcn"',
            'init = "lightgcn"\nset = ["method.embedding_size=8"]',
            "galore",
            "'lightgcn' has embedding",
        ),
        ('init = "lightgcn"', 'init = "lightgcn"\nset = ["train.refit=true"]', "galore", "leave one of them out"),
        ('init = "lightgcn"', 'init = "lightgcn"\nset = ["method.loss=softmax"]', "galore", "trained with loss bpr"),
        ('init = "lightgcn"', 'init = "ease"', "galore", "row 'ease' is a run of 'ease'"),
        ('init = "lightgcn"', 'init = "adjusted"', "galore", "row 'adjusted', which adjusts another"),
        ('method = "ease"', 'method = "ease"\nsave_weights = true', "ease", "changes none"),
        ('variant = "wide"', 'variant = "wide"\nthreads = 100000', "wide", "threads is 100000"),
        ('variant = "wide"', 'variant = "wide+"', "wide", "variant 'wide+' must consist of"),
        ('keep = "99%"', 'keep = "a lot"', "adjusted", "keep is 'a lot'"),
        ('adjust = "lightgcn"', 'adjust = "ease"', "adjusted", "row 'ease' (ease) keeps no validation part"),
        (
            'protocols = ["honest"]\nrows = ["lightgcn", "adjusted", "ease"]',
            'protocols = ["paper"]\nrows = ["adjusted"]',
            "adjusted",
            "row 'lightgcn' (lightgcn) keeps no validation part",
        ),
        (
            'protocols = ["honest"]\nrows = ["lightgcn", "adjusted", "ease"]',
            'protocols = ["paper"]\nrows = ["ease"]',
            "ease",
            "ml-100k cannot have a catalogue up to its largest id",
        ),
        ('keep = "99%"', 'form = "quota"', "adjusted", "unknown form 'quota'"),
    ],
)
def test_what_cannot_be_made_names_its_row(tmp_path, before, after, row, said):
    assert before in SMALL
    plan = plan_of(SMALL.replace(before, after), tmp_path)
    with pytest.raises(ConfigError) as raised:
        check_runs(plan, plan.runs)
    assert said in str(raised.value)
    assert f"plan.toml: row '{row}' on dataset " in str(raised.value)


def test_a_closed_form_that_keeps_a_validation_part_can_be_adjusted(tmp_path):
    held = SMALL.replace('method = "ease"', 'method = "ease"\nset = ["train.validation=yes"]')
    plan = plan_of(held.replace('adjust = "lightgcn"', 'adjust = "ease"'), tmp_path)
    check_runs(plan, plan.runs)


def test_only_what_is_to_be_run_is_checked(tmp_path):
    plan = plan_of(SMALL.replace('method = "ease"', 'method = "eaze"'), tmp_path)
    check_runs(plan, [run for run in plan.runs if run.row != "ease"])


def test_a_place_for_a_folder(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for fitting in (tmp_path, tmp_path / "new" / "er"):
        check_folder(fitting, "--record")
    with pytest.raises(ConfigError, match=r"--record .* is a file; give a folder"):
        check_folder(file, "--record")
    with pytest.raises(ConfigError, match=r"--runs .* lies below .*file, which is a file"):
        check_folder(file / "runs", "--runs")
