"""`caged data`: one file per command."""

from __future__ import annotations

from caged.cli.lazy import Command, lazy_group

COMMANDS = {
    "split": Command(
        "caged.cli.data.splitting:split",
        "Split a log into train, validation and test files that caged train --data reads.",
    ),
    "simulate": Command(
        "caged.cli.data.simulating:simulate",
        "Simulate a shop with a feedback loop, where everyone's true wishes are known.",
    ),
    "import": Command(
        "caged.cli.data.importing:import_",
        "Import a log of any size into a folder that loads fast: sorted, numbered pairs and tables of your ids.",
    ),
    "list": Command(
        "caged.cli.data.listing:list_datasets",
        "List the known datasets: size, whether you have them, source and terms.",
    ),
    "get": Command(
        "caged.cli.data.getting:get", "Get a known dataset, check it, and put it where --data NAME finds it."
    ),
    "info": Command(
        "caged.cli.data.info:info", "Describe a dataset, log or split: sizes, activity, popularity, overlap, checksums."
    ),
}

app = lazy_group(COMMANDS, help="Get, import, split, simulate and describe data.")
