"""The architecture as a test: who imports whom, and which packages the core needs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import caged

ROOT = Path(caged.__file__).parent
FOUNDATION = {
    "_version",
    "errors",
    "arguments",
    "config",
    "seeding",
    "files",
    "optimiser",
    "cuda_graph",
    "columns",
    "threads",
    "progress",
    "processes",
    "signals",
}
ORDER = {
    "data": 1,
    "graph": 2,
    "models": 3,
    "training": 4,
    "evaluation": 4,
    "runs": 5,
    "page": 6,
    "products": 7,
    "cli": 8,
    "__main__": 9,
}
CORE = {"data", "graph", "models", "training", "evaluation"}
CORE_PACKAGES = {"torch", "numpy", "scipy", "pyarrow", "safetensors"}
# Triton comes with CUDA builds of torch, these are imported only where there is a device.
GPU_ONLY = {f"triton_{part}.py": {"triton"} for part in ("edges", "products", "softmax", "triples")}
# With torch; lists are measured and adjusted without it.
MODELS_ARE_RANKED = {
    "caged.evaluation.adjust.of_scores",
    "caged.evaluation.evaluate",
    "caged.evaluation.pair_scores",
    "caged.evaluation.topk",
}
ENTRY = "__init__"  # the public names; loaded on first use


def layer_of(module: Path) -> str:
    """The first part below `caged`: `data` for caged/data/ids.py, `errors` for caged/errors.py."""
    return module.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def imports_of(module: Path, *, skip_type_checking: bool = False) -> set[str]:
    """Absolute dotted names, relative imports resolved, wherever in the file they stand."""
    package = ["caged", *module.relative_to(ROOT).parts[:-1]]
    tree = ast.parse(module.read_text(encoding="utf-8"))
    hidden = {id(inner) for node in ast.walk(tree) if _only_for_types(node) for inner in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if skip_type_checking and id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            # `from caged import data` imports a layer too, hence the names as well.
            found |= {prefix, *(f"{prefix}.{alias.name}" for alias in node.names if prefix == "caged")}
    return found


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def layers_in(names: set[str]) -> set[str]:
    parts = [name.split(".") for name in names]
    return {part[1] for part in parts if part[0] == "caged" and len(part) > 1}


def allowed(layer: str) -> set[str]:
    if layer in FOUNDATION:
        return FOUNDATION
    return FOUNDATION | {layer} | {other for other, place in ORDER.items() if place < ORDER[layer]}


MODULES = sorted(path for path in ROOT.rglob("*.py") if layer_of(path) != ENTRY)


def test_everything_has_a_place_in_the_architecture() -> None:
    assert {layer_of(module) for module in MODULES} <= FOUNDATION | set(ORDER)


def test_a_package_imports_only_from_its_left() -> None:
    imported = {
        module.relative_to(ROOT): layers_in(imports_of(module)) - allowed(layer_of(module)) for module in MODULES
    }
    assert {module: wrong for module, wrong in imported.items() if wrong} == {}


PRODUCTS = {
    path.name: [module for module in MODULES if path in module.parents]
    for path in sorted((ROOT / "products").iterdir())
    if (path / "__init__.py").exists()
}


def other_products_in(product: str) -> set[str]:
    """What the files of a product import of other products: `caged.products.audit`, or something inside of it."""
    names = {name for module in PRODUCTS[product] for name in imports_of(module)}
    return {name for name in names if name.startswith("caged.products.") and name.split(".")[2] != product}


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_product_uses_another_one_through_its_package(product: str) -> None:
    assert {name for name in other_products_in(product) if name.count(".") > 2} == set()


def test_products_do_not_use_each_other_in_a_circle() -> None:
    uses = {product: {name.split(".")[2] for name in other_products_in(product)} for product in PRODUCTS}
    assert uses["demo"] == {"audit"}
    assert set(TopologicalSorter(uses).static_order()) == set(PRODUCTS)


def further_packages(module: Path) -> set[str]:
    roots = {name.split(".")[0] for name in imports_of(module, skip_type_checking=True)} - {"caged", ""}
    return roots - CORE_PACKAGES - GPU_ONLY.get(module.name, set()) - set(sys.stdlib_module_names)


def test_the_core_needs_few_packages() -> None:
    core = [module for module in MODULES if layer_of(module) in CORE | FOUNDATION]
    needed = {module.relative_to(ROOT): further_packages(module) for module in core}
    assert {module: packages for module, packages in needed.items() if packages} == {}


def test_the_walker_sees_what_it_should() -> None:
    module = ROOT / "runs" / "execute.py"
    assert {"caged.data", "caged.errors", "time", "pathlib", "torch"} <= imports_of(module)
    assert {"data", "errors", "evaluation", "training"} <= layers_in(imports_of(module))
    assert "training" not in allowed("evaluation")
    assert "evaluation" not in allowed("training")
    assert "data" not in allowed("errors")
    assert further_packages(ROOT / "cli" / "main.py") == {"typer"}
    assert {"training", "evaluation", "models"} <= allowed("runs")


def test_importing_caged_loads_nothing_heavy() -> None:
    script = "import caged, json, sys; caged.__version__; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & {"torch", "scipy", "typer", "numpy", "pyarrow", "rich", "click"}


def test_data_audits_and_comparisons_need_no_torch() -> None:
    rooms = [ROOT / "data", ROOT / "evaluation", ROOT / "page", ROOT / "products/audit", ROOT / "products/compare"]
    modules = [module for module in MODULES if any(room in module.parents for room in rooms)]
    names = [f"caged.{'.'.join(module.relative_to(ROOT).with_suffix('').parts)}" for module in modules]
    wanted = sorted({name.removesuffix(".__init__") for name in names} - MODELS_ARE_RANKED)
    script = (
        f"import importlib, sys; [importlib.import_module(name) for name in {wanted}]; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_every_public_name_can_be_had() -> None:
    for name in caged.__all__:
        assert getattr(caged, name) is not None
    assert set(dir(caged)) == set(caged.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        caged.nothing  # noqa: B018
