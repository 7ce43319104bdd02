"""`docs/methods.md` says what the program does: its tables are generated, and every method is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from caged.config import Range, build, describe, option
from caged.errors import ConfigError, RunError
from caged.models import METHODS, register
from caged.models.lightgcn import LightGCNConfig
from caged.models.mostpop import MostPopular
from caged.runs.presets import preset_names
from caged.runs.spec import resolve
from tests.cli.invoke import caged
from tools import methods_doc
from tools.methods_doc import documented_methods, updated

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "methods.md"
COMMAND = "python -m tools.methods_doc docs/methods.md"


@dataclass(frozen=True)
class WeirdConfig(LightGCNConfig):
    shape: str = option("round", "which | of them", source="a dream", choices=("round", "square"), search=("square",))
    sizes: tuple[float, ...] = option((0.5, 2.0), "how large")
    active: bool = option(False, "whether")


@pytest.fixture
def weird() -> Iterator[None]:
    register("weird", MostPopular, WeirdConfig, "for this test")
    yield
    del METHODS["weird"]


def test_the_document_is_up_to_date() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    if not (ROOT / "results").is_dir():
        pytest.skip("the recorded results are not part of this copy")
    assert updated(text, ROOT / "results") == text, f"run {COMMAND}"
    assert COMMAND in text


def test_every_method_has_a_section_with_its_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert sorted(documented_methods(text)) == sorted(METHODS)
    for name in METHODS:
        assert f"\n## {name}\n" in text
        assert f"`{name}`" in text.split("\n## ")[0]  # in the overview with its neutral setting


def test_a_method_of_ones_own_gets_its_table(weird: None) -> None:
    text = "# mine\n\n<!-- parameters: weird -->\nold\n<!-- end -->\nthe rest"
    table = updated(text, Path("nowhere"))
    assert table.startswith("# mine\n\n<!-- parameters: weird -->\n| option | default |")
    assert table.endswith("<!-- end -->\nthe rest")
    assert "old" not in table
    assert "| `shape` | round | round \\| square | square | which \\| of them | a dream |" in table
    assert "| `sizes` | 0.5, 2 | a list (a finite number, ...) | - | how large | our choice |" in table
    assert "| `active` | false |" in table
    assert "As in `lightgcn`: `embedding_size`, `layers`, `l2`, `layer_scale`, `table_init`, `loss`," in table
    assert updated(table, Path("nowhere")) == table


def test_an_unknown_method_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"unknown method 'lightgnc'.*did you mean 'lightgcn'"):
        updated("<!-- parameters: lightgnc -->\n<!-- end -->", Path("nowhere"))


def record(folder: Path, seed: int, **changes: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "status": "finished",
        "spec": {"seed": seed},
        "hardware": {"gpu": None},
        "threads": 2,
        "metrics": {"recall@20": 0.12345, "recall@20/niche": None},
        **changes,
    }
    (folder / f"seed{seed}.json").write_text(json.dumps(content))


def test_results_are_read_from_records(tmp_path: Path) -> None:
    record(tmp_path / "shop" / "honest" / "ease", 1)
    record(tmp_path / "shop" / "honest" / "lightgcn", 1, metrics={"recall@20": 0.1, "arp@20": 12.34})
    record(tmp_path / "shop" / "honest" / "lightgcn", 2, metrics={"recall@20": 0.2, "arp@20": 12.34})
    record(tmp_path / "shop" / "honest" / "ips-fast", 2, hardware={"gpu": "H200"})
    record(tmp_path / "shop" / "honest" / "reg", 1, status="failed")
    record(tmp_path / "shop" / "paper" / "ease", 3)
    rows = result_rows("shop honest", tmp_path)
    assert [row[0] for row in rows] == ["`lightgcn`", "`ease`", "`ips-fast`"]
    assert rows[0][1:3] == ["1, 2", "0.1500"]
    assert "12.3" in rows[0]
    assert rows[1][1:4] == ["1", "0.1235", "-"]
    assert rows[1][-1] == "CPU, 2 threads"
    assert rows[2][-1] == "H200"
    assert [row[0] for row in result_rows("shop honest except light* ease", tmp_path)] == ["`ips-fast`"]
    with pytest.raises(RunError, match="holds no finished record"):
        result_rows("market honest", tmp_path)
    with pytest.raises(RunError, match=r"results of 'shop'; allowed is DATASET PROTOCOL \[on TEST\]"):
        result_rows("shop", tmp_path)


def test_results_on_a_further_test_part(tmp_path: Path) -> None:
    record(tmp_path / "shop" / "honest" / "ease", 1, extra_tests={"balanced": {"recall@20": 0.5}})
    assert result_rows("shop honest on balanced", tmp_path)[0][:3] == ["`ease`", "1", "0.5000"]
    assert result_rows("shop honest", tmp_path)[0][2] == "0.1235"


def result_rows(argument: str, results: Path) -> list[list[str]]:
    """The cells of the generated table, without its header."""
    lines = updated(f"<!-- results: {argument} -->\n<!-- end -->", results).splitlines()[3:-1]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_command_rewrites_the_file(tmp_path: Path) -> None:
    path = tmp_path / "methods.md"
    path.write_text("before\n<!-- parameters: mostpop -->\n<!-- end -->\nafter\n")
    methods_doc.main([str(path)])
    assert path.read_text() == "before\n<!-- parameters: mostpop -->\nNo parameters.\n<!-- end -->\nafter\n"


def test_a_wrong_command_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "methods.md"
    for content, sentence in ((None, "does not exist"), ("<!-- results: a b -->\n<!-- end -->", "no finished record")):
        if content is not None:
            path.write_text(content)
        with pytest.raises(SystemExit) as stopped:
            methods_doc.main([str(path), "--results", str(tmp_path)])
        assert stopped.value.code == 2
        assert sentence in capsys.readouterr().err


# ---------------------------------------------------------------- what is worth trying


@pytest.mark.parametrize("name", METHODS)
def test_every_value_to_search_is_allowed(name: str) -> None:
    config = METHODS[name].config
    for info in describe(config):
        tried = info.search
        for value in (tried.low, tried.high) if isinstance(tried, Range) else tried:
            assert getattr(build(config, {info.name: value}, "method"), info.name) == value


@pytest.mark.parametrize("name", ["adjnorm", "reg", "ips", "macr", "advdrop", "apda", "itemknn", "ease"])
def test_baselines_declare_a_search_space(name: str) -> None:
    options = json.loads(caged("methods", "show", name, "--json").out)["method"]
    assert any(len(info["search"]) > 1 for info in options)


# ---------------------------------------------------------------- published values


def test_presets_of_the_published_code() -> None:
    assert {"adjnorm_code", "ips_code", "macr_code"} <= set(preset_names())
    adjnorm = resolve("x", "adjnorm", presets=("adjnorm_code",))
    assert (adjnorm.config.r, adjnorm.config.self_loop, adjnorm.config.l2_on) == (1.0, True, "propagated")
    assert adjnorm.train.batch_size == 1024
    ips = resolve("x", "ips", presets=("movie", "ips_code")).config
    assert (ips.ips_scheme, ips.eta, ips.clip_quantile, ips.l2) == ("cn", 1.0, 0.5, 1e-3)
    macr = resolve("x", "macr", presets=("macr_code",)).config
    assert (macr.alpha, macr.beta, macr.c, macr.fusion, macr.layers) == (1e-2, 1e-3, 40.0, "allpairs", 2)


def test_backbone_presets_do_not_reach_into_the_closed_forms() -> None:
    assert resolve("x", "ease", presets=("movie",)).config == METHODS["ease"].config()
