"""What makes the numbers of `docs/reproduction.md` what they are: one small table per effect, from records alone.

A value that no record holds is `not recorded`, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from caged.data.known import dataset_title
from caged.models import display_name
from caged.page.numbers import percent_change
from caged.page.text_table import markdown_table
from caged.products.reproduction.cells import Cell, Gap, Seeds, cell_of
from caged.products.reproduction.content import curve_of, densities_of, metric_of
from caged.products.reproduction.printed import DATASETS, Printed, printed_value
from caged.products.reproduction.titles import row_title
from caged.products.study import Plan, PlannedRun, Recorded, read_plan, recorded

MISSING = "not recorded"
GROUPS = {"all": "", "niche": "/niche", "popular": "/popular"}
RELEASED = ("lightgcn", "caged")  # what the authors' code trains
CONTROLS = ("caged", "caged-constant", "caged-shuffled", "caged-uniform", "lightgcn-scale-2")
LOSSES = ("softmax", "lightgcn-bce", "lightgcn-adjusted")
BASES = {
    "ease-of-all-ids": "a fifth of all ids",
    "ease": "a fifth of the items in train",
    "ease-of-seen": "a fifth of the items in train or test",
}
WITHOUT_GPU = {"lightgcn": "lightgcn-without-gpu", "softmax": "softmax-without-gpu"}
NEGATIVES = {"fresh": ("lightgcn-fresh", "advdrop"), "replayed": ("lightgcn-replayed", "advdrop-replayed")}
AROUND = 10  # epochs on either side of the best one


@dataclass(frozen=True, eq=False)
class Study:
    """The plan of the paper and what is recorded of it."""

    plan: Plan
    records: dict[PlannedRun, Recorded]

    @classmethod
    def read(cls, path: Path, results: Path) -> Study:
        plan = read_plan(path)
        return cls(plan, recorded(plan.runs, results))

    def seeds(self, data: str, protocol: str, row: str) -> Seeds:
        wanted = (data, protocol, row)
        return Seeds(tuple(one for run, one in self.records.items() if (run.data, run.protocol, run.row) == wanted))

    def cell(self, data: str, protocol: str, row: str, key: str, base: str | None = "lightgcn") -> Cell | Gap:
        below = None if base is None or base == row else self.seeds(data, protocol, base)
        return cell_of(self.seeds(data, protocol, row), below, key)

    def printed(self, data: str, row: str, group: str, metric: str) -> Printed | None:
        run = next((run for run in self.records if (run.data, run.row) == (data, row)), None)
        return None if run is None else printed_value("main", run, group, metric)


def released(study: Study) -> str:
    """The two methods that the released code trains, under its protocol, beside what is printed."""
    rows = []
    for data in DATASETS:
        for row in RELEASED:
            for group, suffix in GROUPS.items():
                for metric, name in (("recall@20", "Recall@20"), ("ndcg@20", "NDCG@20 (100 hits)")):
                    key = ("ndcg_hits100@20" if metric == "ndcg@20" else metric) + suffix
                    found, told = study.cell(data, "paper", row, key), study.printed(data, row, group, metric)
                    if told is not None:
                        beside = _beside(told, found, data)
                        rows.append([dataset_title(data), _title(row), f"{name}, {group}", *beside])
    header = ["dataset", "method", "metric", "printed", "`paper`", "difference", "printed gain", "gain"]
    return markdown_table(header, rows)


def _beside(told: Printed, found: Cell | Gap, data: str) -> list[str]:
    """Printed value, ours, their difference where the data is the same, and both gains over LightGCN."""
    if isinstance(found, Gap):
        return [_number(told.value), MISSING, "-", told.change or "-", "-"]
    other_data = data == "pinterest-caged"
    difference = "other users" if other_data else percent_change(100 * (found.mean / told.value - 1))
    gain = "-" if found.change is None else percent_change(found.change)
    return [_number(told.value), _number(found.mean), difference, told.change or "-", gain]


def selection(study: Study) -> str:
    """CAGED's gain over LightGCN where test decides and where validation does, and what the best epoch owes to luck."""
    rows = []
    for data in DATASETS:
        for group, suffix in GROUPS.items():
            told = study.printed(data, "caged", group, "recall@20")
            gains = [
                _change(study.cell(data, protocol, "caged", f"recall@20{suffix}")) for protocol in ("paper", "honest")
            ]
            rows.append([dataset_title(data), group, (told and told.change) or "-", *gains])
    lucky = [[dataset_title(data), *(_luck(study.seeds(data, "paper", row)) for row in RELEASED)] for data in DATASETS]
    return "\n\n".join(
        [
            markdown_table(["dataset", "items", "printed gain in Recall@20", "`paper`", "`honest`"], rows),
            f"What the chosen epoch has above the mean of the {AROUND} epochs on either side of it, on the test part "
            "that chose it (`paper`):",
            markdown_table(["dataset", *map(_title, RELEASED)], lucky),
        ]
    )


def _luck(seeds: Seeds) -> str:
    """The best value of a curve against its neighbours; the mean over seeds that recorded their curve."""
    found = [luck for one in seeds.finished if (luck := _peak(list(curve_of(one).values()))) is not None]
    return percent_change(fmean(found)) if found else MISSING


def _peak(values: Sequence[float]) -> float | None:
    if not values:
        return None
    best = max(range(len(values)), key=values.__getitem__)
    around = [*values[max(0, best - AROUND) : best], *values[best + 1 : best + 1 + AROUND]]
    return 100 * (values[best] / fmean(around) - 1) if around and fmean(around) else None


def ndcg(study: Study) -> str:
    """Both definitions on the same lists."""
    rows = []
    for data in DATASETS:
        for row in RELEASED:
            for group, suffix in GROUPS.items():
                usual, hits = (
                    study.cell(data, "paper", row, f"{name}@20{suffix}") for name in ("ndcg", "ndcg_hits100")
                )
                told = study.printed(data, row, group, "ndcg@20")
                if told is None:
                    continue
                times = "-"
                if isinstance(usual, Cell) and isinstance(hits, Cell):
                    times = f"{hits.mean / usual.mean:.2f}"
                place = [dataset_title(data), _title(row), group]
                rows.append([*place, _shown(usual), _shown(hits), times, _number(told.value)])
    header = ["dataset", "method", "items", "usual NDCG@20", "NDCG@20 (100 hits)", "times", "printed"]
    return markdown_table(header, rows)


def groups(study: Study) -> str:
    """The same lists of EASE, with the popular fifth taken of other sets of items."""
    rows = []
    for data in DATASETS:
        for row, words in BASES.items():
            cells = [
                study.cell(data, "paper", row, f"recall@20{suffix}", base=None) for suffix in ("/niche", "/popular")
            ]
            rows.append([dataset_title(data), words, *map(_shown, cells)])
    return markdown_table(["dataset", "popular are", "niche Recall@20", "popular Recall@20"], rows)


def scale(study: Study) -> str:
    """CAGED beside its controls, which have no information about single edges."""
    return _against_lightgcn(study, CONTROLS, ("epinions-caged", "ml-1m-caged"))


def loss(study: Study) -> str:
    """Another loss, and popularity taken out after training."""
    return _against_lightgcn(study, LOSSES, ("epinions-caged", "ml-1m-caged"))


def _against_lightgcn(study: Study, rows: Iterable[str], datasets: Iterable[str]) -> str:
    table = []
    for data in datasets:
        for row in rows:
            cells = [study.cell(data, "honest", row, key) for key in ("recall@20", "recall@20/niche")]
            if any(not isinstance(cell, Gap) or cell.reason != "not planned" for cell in cells):
                seeds = cells[0].seeds if isinstance(cells[0], Cell) else 0
                table.append([dataset_title(data), f"`{row}`", str(seeds), *map(_change, cells)])
    header = ["dataset", "row", "seeds", "change of Recall@20", "change of niche Recall@20"]
    return markdown_table(header, table)


def seeds(study: Study) -> str:
    """How much another seed changes, beside the gain that is printed."""
    rows = []
    for data in DATASETS:
        told = study.printed(data, "caged", "all", "recall@20")
        for protocol in ("paper", "honest"):
            for row in RELEASED:
                values = study.seeds(data, protocol, row).values("recall@20")
                if len(values) < 2:
                    spread = ["-", "-"]
                else:
                    spread = [f"{100 * stdev(values) / fmean(values):.1f}%", f"{min(values):.4f} to {max(values):.4f}"]
                rows.append(
                    [
                        dataset_title(data),
                        protocol,
                        _title(row),
                        str(len(values)),
                        *spread,
                        (told and told.change) or "-",
                    ]
                )
    header = [
        "dataset",
        "protocol",
        "method",
        "seeds",
        "standard deviation",
        "range of Recall@20",
        "printed gain of CAGED",
    ]
    return markdown_table(header, rows)


def without_gpu(study: Study) -> str:
    """The same seed with and without a GPU: what it took, and what came out."""
    rows = []
    for row, on_cpu in WITHOUT_GPU.items():
        for name in (row, on_cpu):
            found = study.seeds("epinions-caged", "honest", name).finished
            rows.append([_title(row), *_run_in_words(next((one for one in found if one.run.seed == 1), None))])
    return markdown_table(["method", "on", "epochs", "minutes", "Recall@20", "niche Recall@20"], rows)


def _run_in_words(one: Recorded | None) -> list[str]:
    if one is None or one.content is None:
        return [MISSING] * 5
    content, found = one.content, (metric_of(one, key) for key in ("recall@20", "recall@20/niche"))
    machine = content["hardware"].get("gpu") or f"CPU, {content['threads']} threads"
    values = [MISSING if value is None else _number(value) for value in found]
    return [machine, str(content["training"]["epochs"]), f"{one.seconds / 60:.1f}", *values]


def densities(study: Study) -> str:
    """Of the first record of CAGED on each dataset that holds them."""
    rows = []
    for data in DATASETS:
        caged = (data, display_name("caged"))
        learned = [one for run, one in study.records.items() if (run.data, row_title(run)) == caged]
        found = next((curves for one in learned if one.finished and (curves := densities_of(one))), None)
        if found is None:
            rows.append([dataset_title(data), *[MISSING] * 5])
            continue
        for curve in found:
            half = curve["mean"] / 2
            shares = [
                f"{1 - _share_below(curve, 0.5):.1%}",
                f"{_share_below(curve, half):.1%}" if half <= 1 else MISSING,
            ]
            told = [curve["name"], str(curve["updates"]), f"{curve['mean']:.3f}", *shares]
            rows.append([dataset_title(data), *told])
    return markdown_table(["dataset", "moment", "updates", "mean", "0.5 or more", "below half the mean"], rows)


def _share_below(curve: Mapping[str, Any], value: float) -> float:
    """Of the interactions; what falls into a bin counts as spread evenly over it. Above 1 a record has no bins."""
    if value > 1:
        raise ValueError(f"the bins of a density end at 1; the share below {value:g} is not recorded")
    bins = len(curve["values"])
    whole = min(int(value * bins), bins - 1)
    below: float = sum(curve["values"][:whole]) + (value * bins - whole) * curve["values"][whole]
    return below / bins


def negatives(study: Study) -> str:
    """Who is ahead with fresh negatives and with those that repeat, by what people did later and by a balanced test."""
    rows = []
    for words, (lightgcn, advdrop) in NEGATIVES.items():
        for test, part in (("natural", None), ("balanced", "test_ood")):
            first, second = (_recall_on(study, row, part) for row in (lightgcn, advdrop))
            ahead = MISSING if first is None or second is None else percent_change(100 * (second / first - 1))
            shown = [MISSING if value is None else _number(value) for value in (first, second)]
            rows.append([words, test, *shown, ahead])
    return markdown_table(["negatives", "test", "LightGCN", "AdvDrop", "AdvDrop against LightGCN"], rows)


def _recall_on(study: Study, row: str, part: str | None) -> float | None:
    """The mean over seeds of Recall@20 on a test part of Yelp2018-OOD; None is the usual one."""
    contents = [one.content or {} for one in study.seeds("yelp2018-ood", "honest", row).finished]
    found = [one["metrics"] if part is None else one.get("extra_tests", {}).get(part, {}) for one in contents]
    values = [metrics["recall@20"] for metrics in found if "recall@20" in metrics]
    return fmean(values) if values else None


def _title(row: str) -> str:
    return {"lightgcn": "LightGCN", "caged": "CAGED", "softmax": "softmax"}[row]


def _number(value: float) -> str:
    return f"{value:.4f}"


def _shown(cell: Cell | Gap) -> str:
    return _number(cell.mean) if isinstance(cell, Cell) else MISSING


def _change(cell: Cell | Gap) -> str:
    """With Welch's interval where there are three seeds on both sides."""
    if isinstance(cell, Gap) or cell.change is None:
        return MISSING
    between = "" if cell.interval is None else f" [{cell.interval[0]:+.1f}, {cell.interval[1]:+.1f}]"
    return percent_change(cell.change) + between
