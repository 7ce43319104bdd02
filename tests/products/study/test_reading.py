from __future__ import annotations

import pytest

from caged.errors import ConfigError
from caged.products.study import read_plan
from tests.products.study.plans import SMALL, plan_of


def run_named(plan, name):
    return next(run for run in plan.runs if run.name == name)


def test_settings_add_up_from_protocol_dataset_row_and_section(tmp_path):
    text = SMALL.replace("[sections.further]", '[sections.further]\nset = ["train.batch_size=64"]').replace(
        'protocols = ["paper", "honest"]\nrows = ["lightgcn"]', 'protocols = ["paper"]\nrows = ["wide"]'
    )
    run = run_named(plan_of(text, tmp_path), "first-paper-wide-1")
    assert run.settings == (
        *("train.patience=50", "train.epochs=3", "train.epochs=4", "method.embedding_size=32", "train.batch_size=64"),
    )
    assert run.presets == ("epinions",)


def test_a_row_says_more_where_it_is_on_a_dataset(tmp_path):
    text = SMALL.replace('rows = ["galore", "wide", "scale"]', 'rows = ["wide"]').replace(
        'datasets = ["first"]\nprotocols = ["honest"]', 'datasets = ["second"]\nprotocols = ["honest"]'
    )
    run = run_named(plan_of(text, tmp_path), "second-honest-wide-1")
    assert run.settings == ("method.embedding_size=32", "method.embedding_size=48")


def test_a_plain_row_takes_nothing_of_the_dataset(tmp_path):
    run = run_named(plan_of(SMALL, tmp_path), "first-honest-ease-1")
    assert (run.presets, run.settings, run.device) == ((), (), "cpu")


def test_what_a_run_needs_has_its_dataset_protocol_and_seed(tmp_path):
    plan = plan_of(SMALL, tmp_path)
    for name in ("first-honest-galore-1", "second-honest-adjusted-3"):
        run = run_named(plan, name)
        assert run.needs == run_named(plan, name.replace("galore", "lightgcn").replace("adjusted", "lightgcn"))


def test_an_adjusted_row_is_called_after_what_it_adjusts(tmp_path):
    run = run_named(plan_of(SMALL, tmp_path), "first-honest-adjusted-2")
    assert (run.kind, run.method, run.variant, run.options) == ("adjust", "lightgcn", "adjusted", ("--keep", "99%"))
    on_wide = SMALL.replace('adjust = "lightgcn"', 'adjust = "wide"')
    assert run_named(plan_of(on_wide, tmp_path), "first-honest-adjusted-2").variant == "wide-adjusted"


def test_one_value_of_a_row_can_be_named(tmp_path):
    plan = plan_of(SMALL.replace('rows = ["galore", "wide", "scale"]', 'rows = ["scale-2"]'), tmp_path)
    assert {run.row for run in plan.of("further")} == {"scale-2", "lightgcn"}
    assert run_named(plan, "first-honest-scale-2-1").settings[-1] == "method.layer_scale=2"


def test_a_market_is_part_of_the_run(tmp_path):
    text = SMALL.replace('data = "ml-100k"', "simulate = { seed = 3, user_count = 50 }")
    run = run_named(plan_of(text, tmp_path), "second-honest-lightgcn-1")
    assert (run.data, run.market) == ("second", (("seed", 3), ("user_count", 50)))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('title = "small"', "title = 3", "title in the file is 3; it must be text"),
        ('title = "small"', 'titel = "small"', "did you mean 'title'"),
        ('[rows.wide]\nmethod = "lightgcn"', "[rows.wide]", "row 'wide' has no method"),
        ("[rows.wide]", "[rows.main]", "'main' is a section and a row"),
        ("[protocols.paper]", "[protocols.papier]", "unknown protocol 'papier'"),
        ('rows = ["galore", "wide", "scale"]', 'rows = ["galor"]', "unknown row 'galor'"),
        ('rows = ["galore", "wide", "scale"]', "rows = []", "grid 1 of section 'further' names no rows"),
        ('init = "lightgcn"', 'init = "nothing"', "unknown row to start from 'nothing'"),
        ('init = "lightgcn"', 'init = "galore"', "needs itself"),
        ('init = "lightgcn"', 'init = "scale"', "unknown row to start from 'scale'"),
        ('variant = "wide"', "", "both write gowalla/honest/lightgcn/seed1.json"),
        ("on.second.set", "on.third.set", "unknown name 'third'"),
        ("[[sections.main.grids]]", "[sections.main.grids]", "write [[sections.NAME.grids]] with two brackets"),
        (", values = [0.5, 2] }", " }", "lacks its key or its values"),
        ("values = [0.5, 2]", "values = []", "lacks its key or its values"),
        ("values = [0.5, 2]", "values = 3", "values in vary of row 'scale' is 3; it must be a list"),
        ("values = [0.5, 2]", "values = [[1]]", "has the value a list"),
        ('keep = "99%"', 'method = "ease"', "[rows.adjusted] adjusts another row, and 'method' is that row's"),
        ('keep = "99%"', 'vary = { key = "x.y", values = [1] }', "'vary' is that row's"),
        ('variant = "wide"', 'variant = "wide"\nkeep = "99%"', "[rows.wide] has 'keep', which is for rows with adjust"),
        ("on.paper.set", "on.second.set", "[datasets.first.on] unknown name 'second'"),
        ('about = "The main table."', 'set = ["train.epochs=2"]', "section 'main' has set, and its row 'adjusted'"),
        ('data = "ml-100k"', 'data = ""', "has data = ''"),
        ('title = "small"', 'results = "a\\u0000b"', "results is 'a\\x00b'; it must be a path"),
        ('set = ["train.epochs=3"]', "set = [3]", "it must be text"),
        ("seeds = [1, 2, 3]", "seeds = [-1]", "grid 1 of section 'main': seed is -1"),
        ("seeds = [1, 2, 3]", "seeds = []", "grid 1 of section 'main' has no seeds"),
        ('data = "ml-100k"', 'data = "x"\nsimulate = { seed = 1 }', "has data and simulate"),
        ('data = "ml-100k"', "simulate = { user_cuont = 5 }", "did you mean 'simulate.user_count'"),
        ('device = "cpu"', 'device = "gpu"', "[rows.ease]: unknown device 'gpu'"),
        ('device = "cpu"', "threads = 0", "[rows.ease]: threads is 0"),
        ("[datasets.second]", '[datasets."second/part"]', "the name of dataset 'second/part' becomes that of a folder"),
        ('variant = "wide"', 'variant = "../wide"', "the name of variant '../wide' becomes that of a folder"),
        ("values = [0.5, 2]", 'values = ["a b"]', "the name of row 'scale-a b' becomes that of a folder"),
        ("[sections.further]", "[sections.further", "not valid TOML"),
    ],
)
def test_what_does_not_fit_is_one_sentence(tmp_path, before, after, said):
    assert before in SMALL
    with pytest.raises(ConfigError) as raised:
        plan_of(SMALL.replace(before, after, 1), tmp_path)
    assert said in str(raised.value)
    assert "plan.toml" in str(raised.value)
    assert "\n" not in str(raised.value).strip()


def test_records_may_lie_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    plan = plan_of('results = "~/records"\n' + SMALL, tmp_path)
    assert plan.results == tmp_path / "home" / "records"
    with pytest.raises(ConfigError, match=r"plan\.toml: "):
        plan_of('results = "~nobody-of-this-name/x"\n' + SMALL, tmp_path)


def test_a_plan_without_runs_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="it holds no runs"):
        plan_of('title = "nothing"', tmp_path)


def test_a_plan_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigError, match="cannot read plan"):
        read_plan(tmp_path / "no.toml")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("logs/shop.csv", "shop"),
        ("logs/shop.v2.csv.gz", "shop.v2"),
        ("logs/shop.cgraph", "shop"),
        ("split/", "split"),
        ("ml-1m", "ml-1m"),
    ],
)
def test_records_of_a_path_lie_where_training_writes_them(tmp_path, data, name):
    plan = plan_of(SMALL.replace('data = "ml-100k"', f'data = "{data}"'), tmp_path)
    assert run_named(plan, "second-honest-lightgcn-1").place.as_posix() == f"{name}/honest/lightgcn/seed1.json"


def test_plain_rows_have_what_is_about_data_and_judging(tmp_path):
    shared = 'data = "ml-100k"\nset = ["train.epochs=2", "data.split_seed=7", "eval.popular_share=0.1"]'
    run = run_named(plan_of(SMALL.replace('data = "ml-100k"', shared), tmp_path), "second-honest-ease-1")
    assert run.settings == ("data.split_seed=7", "eval.popular_share=0.1")


def test_values_that_are_true_or_false_are_written_as_settings_are(tmp_path):
    vary = SMALL.replace('"method.layer_scale", values = [0.5, 2]', '"train.refit", values = [true, false]')
    run = run_named(plan_of(vary, tmp_path), "first-honest-scale-true-1")
    assert run.settings[-1] == "train.refit=true"
