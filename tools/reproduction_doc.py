"""The generated parts of `docs/reproduction.md`: what reproduces, the tables of the study, and its effects.

    python -m tools.reproduction_doc docs/reproduction.md

rewrites what stands between the markers and leaves the rest alone:

    <!-- findings: KIND -->          a sentence per claim, with its numbers and whether it holds: levels, gains, honest,
                                     controls, ablations
    <!-- table: SECTION DATASET -->  the table of a section of studies/paper.toml on a dataset; behind it may follow
                                     which items, such as all
    <!-- effect: NAME -->            a table of `tools.reproduction_effects`
    <!-- end -->
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from caged.data.known import dataset_title
from caged.errors import RunError
from caged.page.numbers import percent_change
from caged.page.text_table import markdown, markdown_table
from caged.products.reproduction.cells import Cell, Gap
from caged.products.reproduction.printed import DATASETS, METHODS, printed_value
from caged.products.reproduction.sheets import caption, marked_cell, sheets
from caged.products.reproduction.tables import study_tables
from caged.products.results import LEAST_FOR_INTERVAL
from tools import reproduction_effects as effects
from tools.marked import filled, rewrite
from tools.reproduction_effects import Study

PLAN = Path("studies/paper.toml")
SAME_DATA = ("ml-1m-caged", "epinions-caged")  # of Pinterest only a part is public
EFFECTS: dict[str, Callable[[Study], str]] = {
    name: getattr(effects, name)
    for name in (
        "released",
        "selection",
        "ndcg",
        "groups",
        "scale",
        "loss",
        "seeds",
        "without_gpu",
        "negatives",
        "densities",
    )
}
SAME, CLOSE = 2.0, 10.0  # percent between a value and the printed one
OTHERS = {row: name for row, name in METHODS.items() if row not in effects.RELEASED}
ABLATIONS = {
    "caged-no-two-stage": "two stages",
    "caged-no-update-condition": "the update condition",
    "caged-no-momentum": "momentum",
}
# What is said of a table once, in the text above it; the rest of its caption stands below it.
SAID_ONCE = ("Mean over seeds", "Printed values", "Protocol 'paper'")


def updated(text: str, results: Path) -> str:
    """The document with every marked part generated anew."""
    study = Study.read(PLAN, results)
    kinds: dict[str, Callable[[str], str]] = {
        "findings": partial(_findings, study),
        "table": partial(_table, study),
        "effect": lambda name: _named(EFFECTS, "effect", name)(study),
    }
    return filled(text, kinds)


def _named(known: dict[str, Callable[[Study], str]], kind: str, name: str) -> Callable[[Study], str]:
    if name not in known:
        raise RunError(f"there is no {kind} '{name}'; known: {', '.join(known)}")
    return known[name]


# ---------------------------------------------------------------- tables


def _table(study: Study, argument: str) -> str:
    section, dataset, *groups = argument.split()
    found = study_tables(study.plan, study.records, only=[section])
    table = next((one for one in found if one.data == dataset), None)
    if table is None:
        raise RunError(f"{PLAN} has no section '{section}' on dataset '{dataset}'; name one that it has")
    parts = []
    for sheet in sheets(table):
        if not groups or sheet.group in groups:
            right = [False, *(True for _ in sheet.headers[1:])]
            drawn = markdown_table(sheet.headers, [[marked_cell(cell) for cell in row] for row in sheet.rows], right)
            parts += [f"**{sheet.title}**", drawn]
    below = [sentence for sentence in caption(table) if not sentence.startswith(SAID_ONCE)]
    return "\n\n".join([*parts, "\n".join(map(markdown, below))])


# ---------------------------------------------------------------- findings


def _findings(study: Study, kind: str) -> str:
    kinds = {
        "levels": _levels,
        "gains": _gains,
        "others": _others,
        "honest": _honest,
        "controls": _controls,
        "ablations": _ablations,
    }
    if kind not in kinds:
        raise RunError(f"there are no findings '{kind}'; known: {', '.join(kinds)}")
    return "\n".join(f"- {sentence}" for sentence in kinds[kind](study))


def _levels(study: Study) -> Iterator[str]:
    """Values under the paper's protocol, beside the printed ones."""
    for row, name in (("lightgcn", "LightGCN"), ("caged", "CAGED")):
        for metric, words in (("recall@20", "Recall@20"), ("ndcg@20", "NDCG@20 (100 hits)")):
            for group in ("all", "niche"):
                yield f"{name}, {words}, {group} items: {_level(study, row, metric, group)}"


def _level(study: Study, row: str, metric: str, group: str) -> str:
    key = ("ndcg_hits100@20" if metric == "ndcg@20" else metric) + effects.GROUPS[group]
    said, held = [], {}
    for data in SAME_DATA:
        told, found = study.printed(data, row, group, metric), study.cell(data, "paper", row, key)
        if told is not None and isinstance(found, Cell):
            difference = 100 * (found.mean / told.value - 1)
            held[data] = _of_level(difference)
            ours = f"{found.mean:.4f} (printed {told.value:.4f}, {percent_change(difference)})"
            said.append(f"{_on(data)} {ours}")
    return f"{_verdict(held)} {_listed(said)}"


def _others(study: Study) -> Iterator[str]:
    """The seven methods of which the authors released no code, at settings that the paper does not give."""
    for row, name in OTHERS.items():
        for group in ("all", "niche"):
            yield f"{name}, Recall@20, {group} items: {_level(study, row, 'recall@20', group)}"


def _gains(study: Study) -> Iterator[str]:
    """CAGED's changes against LightGCN under the paper's protocol, beside the printed ones."""
    for group, suffix in effects.GROUPS.items():
        said, held = [], {}
        for data in SAME_DATA:
            told = study.printed(data, "caged", group, "recall@20")
            found = study.cell(data, "paper", "caged", f"recall@20{suffix}")
            if told is not None and isinstance(found, Cell) and found.change is not None:
                held[data] = _of_change(found.change, _as_number(told.change))
                said.append(f"{_on(data)} {percent_change(found.change)} (printed {told.change})")
        yield f"CAGED's gain in Recall@20, {group} items: {_verdict(held)} {_listed(said)}"


def _honest(study: Study) -> Iterator[str]:
    """The same with every decision on validation, as far as seeds allow."""
    for group, suffix in effects.GROUPS.items():
        said = []
        for data in DATASETS:
            found = study.cell(data, "honest", "caged", f"recall@20{suffix}")
            if isinstance(found, Cell) and found.change is not None:
                said.append(f"{_on(data)} {percent_change(found.change)}, {_certainty(found)}")
        yield f"CAGED's gain in Recall@20, {group} items, decided on validation. {_listed(said)}"


def _controls(study: Study) -> Iterator[str]:
    """CAGED beside the control that gives every edge the same likelihood."""
    for protocol in ("honest", "paper"):
        for data in DATASETS:
            cells = [study.cell(data, protocol, row, "recall@20") for row in ("caged", "caged-constant")]
            if all(isinstance(cell, Cell) and cell.change is not None for cell in cells):
                caged, constant = (cell for cell in cells if isinstance(cell, Cell))
                assert caged.change is not None
                assert constant.change is not None
                more = "The control gains as much or more" if constant.change >= caged.change else "CAGED gains more"
                seeds = min(caged.seeds, constant.seeds)
                yield (
                    f"{more} {_on(data)} under `{protocol}`: CAGED {percent_change(caged.change)}, the control "
                    f"{percent_change(constant.change)} ({seeds} seed{'s' * (seeds > 1)})."
                )


def _ablations(study: Study) -> Iterator[str]:
    """What CAGED loses without a part, under `honest`, beside the printed loss."""
    data = "epinions-caged"
    for row, words in ABLATIONS.items():
        run = next((run for run in study.records if run.row == row), None)
        told = None if run is None else printed_value("ablations", run, "all", "recall@20")
        found = study.cell(data, "honest", row, "recall@20", base="caged")
        if told is None:
            continue
        if isinstance(found, Gap) or found.change is None:
            yield f"Without {words}: not recorded (printed {told.change})."
            continue
        said = f"{percent_change(found.change)} {_on(data)} (printed {told.change})"
        seeds = study.seeds(data, "honest", "caged").values("recall@20")
        if len(seeds) >= LEAST_FOR_INTERVAL and min(seeds) <= found.mean <= max(seeds):
            own = f"{found.mean:.4f}, where {len(seeds)} seeds of CAGED reach {min(seeds):.4f} to {max(seeds):.4f}"
            yield f"Without {words}: no more than another seed changes. {said}: {own}."
        else:
            yield f"Without {words}: {_of_change(found.change, _as_number(told.change))}. {said}."


# ---------------------------------------------------------------- words


def _on(data: str) -> str:
    return f"on {dataset_title(data)}"


def _as_number(change: str | None) -> float:
    return float((change or "0").rstrip("%*"))


def _of_level(difference: float) -> str:
    """
    >>> [_of_level(one) for one in (-0.7, 3.0, -24.7)]
    ['reproduced', 'close', 'not reproduced']
    """
    return "reproduced" if abs(difference) <= SAME else "close" if abs(difference) <= CLOSE else "not reproduced"


def _of_change(found: float, told: float) -> str:
    """
    >>> _of_change(1.3, 1.45), _of_change(0.4, 1.45), _of_change(-1.4, 19.5), _of_change(-27.4, -81.5)
    ('reproduced', 'less than half of it', 'not reproduced', 'less than half of it')
    """
    if found * told <= 0:
        return "not reproduced"
    return "reproduced" if abs(found) >= abs(told) / 2 else "less than half of it"


def _verdict(held: dict[str, str]) -> str:
    """
    >>> _verdict({"ml-1m-caged": "reproduced", "epinions-caged": "not reproduced"})
    'reproduced on MovieLens-1M, not reproduced on Epinions.'
    >>> _verdict({"ml-1m-caged": "close", "epinions-caged": "close"}), _verdict({})
    ('close.', 'not recorded.')
    """
    if not held:
        return "not recorded."
    if len(set(held.values())) == 1:
        return f"{next(iter(held.values()))}."
    return ", ".join(f"{word} {_on(data)}" for data, word in held.items()) + "."


def _certainty(cell: Cell) -> str:
    if cell.interval is None:
        return f"{cell.seeds} seed{'s' * (cell.seeds > 1)}, so no interval"
    low, high = cell.interval
    zero = "contains zero" if low <= 0 <= high else "lies above zero" if low > 0 else "lies below zero"
    return f"and the interval over {cell.seeds} seeds [{low:+.1f}, {high:+.1f}] {zero}"


def _listed(said: Sequence[str]) -> str:
    if not said:
        return "Nothing is recorded yet."
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


def main(arguments: Sequence[str] | None = None) -> None:
    rewrite(arguments, updated, "Generate the tables and findings of docs/reproduction.md anew.")


if __name__ == "__main__":
    main()
