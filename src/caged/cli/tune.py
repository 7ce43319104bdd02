"""`caged tune`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from caged.cli.help import group
from caged.cli.output import (
    INTERRUPTED,
    AsJson,
    Verbose,
    command_line,
    print_json,
    print_sentences,
    print_source,
    print_table,
    print_text,
    say,
)
from caged.cli.progress import StopOnCtrlC, progress_line
from caged.cli.resuming import check_only_resume
from caged.errors import ConfigError
from caged.files import check_file, write_text
from caged.models import registered
from caged.page.html import templates_are_there
from caged.products.tune import (
    Answer,
    Constraint,
    NothingChosen,
    Objective,
    answer_json,
    answer_latex,
    answer_markdown,
    answer_sentences,
    answer_tables,
    check_record,
    declared_space,
    judge_again,
    make_settings,
    preset_of_record,
    read_record,
    resume_tune,
    seconds_in,
    space_json,
    space_toml,
    start_tune,
    told_tune,
    write_page,
    write_record,
)

# What may be said together with --resume: how long and how to report, not what to search.
WITH_RESUME = (
    *("resume_", "budget", "finish", "workers", "test_defaults"),
    *("record", "variant", "as_json", "verbose"),
)

Record = Annotated[
    Path | None, typer.Option(help="Also write the record of the search below this folder, as tunes/DATASET.json.")
]
Variant = Annotated[str | None, typer.Option(help="Name of the record beside the dataset, e.g. niche.")]

Maximise = Annotated[
    str | None, typer.Option(help="Validation metric to raise, e.g. recall@20/niche [default: recall@20].")
]
Minimise = Annotated[str | None, typer.Option(help="Validation metric to lower instead, e.g. gini@20.")]
SubjectTo = Annotated[
    list[str] | None,
    typer.Option(help="What must hold, e.g. 'recall@20>=99% of lightgcn' or 'gini@20<=0.8'; repeatable."),
]

app = group(invoke_without_command=True)


@app.callback()
def tune(
    ctx: typer.Context,
    data: Annotated[
        str | None, typer.Option(help="Dataset name, log file, or folder with parts, as in caged train.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Methods, e.g. lightgcn,softmax,ease; see caged methods.")] = None,
    trials: Annotated[int, typer.Option(help="Trials of each method; the first has its defaults.")] = 20,
    epochs: Annotated[int, typer.Option(help="Most epochs of a trial, all stages together.")] = 200,
    maximise: Maximise = None,
    minimise: Minimise = None,
    subject_to: SubjectTo = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(help="Named values or a TOML file, part of the defaults; repeatable, later wins."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="One value that is not searched, for every method that has it; repeatable."),
    ] = None,
    space: Annotated[
        Path | None, typer.Option(help="TOML file with what to try instead; see caged tune space METHOD.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="End trials early that are behind others of their method.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the search and of its trainings.")] = 1,
    seeds: Annotated[int, typer.Option(help="Trainings of each chosen setting, from --seed on, each tested.")] = 3,
    budget: Annotated[str | None, typer.Option(help="Stop after this time, e.g. 9m; --resume goes on.")] = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Choose and test at the end of the budget, though trials are left.")
    ] = False,
    test_defaults: Annotated[
        bool, typer.Option("--test-defaults", help="Train and test the defaults too, with the same seeds.")
    ] = False,
    record: Record = None,
    variant: Variant = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    workers: Annotated[int, typer.Option(help="Trainings side by side, each in a process of its own.")] = 1,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads of a training; all cores, shared by the workers, if left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="New folder of the search.")] = None,
    resume_: Annotated[
        Path | None,
        typer.Option("--resume", help="Go on with the search in this folder; what it searches is fixed."),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Tune methods with equal budgets, and choose one.

    Every method gets the same number of trials, cap on epochs and seed; its defaults are the first trial. Everything is
    chosen on the validation part. At the end the chosen settings are trained anew and tested, once. A search that was
    stopped or killed goes on with --resume.

    Examples:

      caged tune --data log.csv --methods lightgcn,softmax,ease --trials 20 --out tunes/first

      caged tune --data log.csv --methods ips,softmax --maximise recall@20/niche --subject-to 'recall@20>=0.1' --out t

      caged tune --resume tunes/first --budget 9m
    """
    if ctx.invoked_subcommand is not None:
        return
    seconds = None if budget is None else seconds_in(budget)
    check_record(record, variant)
    folder = resume_ or out
    try:
        with progress_line(quiet=as_json and not verbose) as line, StopOnCtrlC() as stop:
            if resume_ is not None:
                check_only_resume(ctx, WITH_RESUME, what="search")
                answer = resume_tune(
                    resume_,
                    budget=seconds,
                    finish=finish,
                    workers=workers,
                    test_defaults=test_defaults,
                    command=command_line(),
                    report=line,
                    stop_requested=stop,
                )
            else:
                if data is None or methods is None or out is None:
                    raise ConfigError("--data, --methods and --out are needed (or --resume DIR); see caged tune --help")
                settings = make_settings(
                    data,
                    [name.strip() for name in methods.split(",") if name.strip()],
                    trials=trials,
                    epochs=epochs,
                    seed=seed,
                    seeds=seeds,
                    objective=_objective(maximise, minimise),
                    constraints=[Constraint.parse(text) for text in subject_to or ()],
                    presets=preset or (),
                    fixed=set_ or (),
                    space_file=space,
                    device=device,
                    threads=threads,
                    prune=prune,
                )
                answer = start_tune(
                    settings,
                    out,
                    budget=seconds,
                    finish=finish,
                    workers=workers,
                    test_defaults=test_defaults,
                    command=command_line(),
                    report=line,
                    stop_requested=stop,
                )
            stopped = stop()
    except NothingChosen:
        if finish:
            raise
        say(f"stopped before every method had a trial; {_go_on(folder)}")
        if as_json:
            print_json({"folder": folder, "complete": False, "tested": False, "winner": None})
        sys.exit(INTERRUPTED if stop() else 0)
    _report(answer, as_json=as_json, record=record, variant=variant)
    if answer.tests.left:
        say(f"stopped before all tests were made; {_go_on(answer.folder)}")
    elif not answer.tested:
        say(f"stopped before the end: nothing is tested yet; {_go_on(answer.folder)}")
        say("to test what is chosen so far instead, and search no more, add --finish")
    if stopped:
        sys.exit(INTERRUPTED)


def _go_on(folder: Path | None) -> str:
    return f"continue with: caged tune --resume {shlex.quote(str(folder))}"


def _objective(maximise: str | None, minimise: str | None) -> Objective | None:
    if maximise is not None and minimise is not None:
        raise ConfigError(
            "--maximise and --minimise are two objectives; choose one, and hold the other with --subject-to"
        )
    if minimise is not None:
        return Objective.parse(minimise, maximise=False)
    return None if maximise is None else Objective.parse(maximise)


def _report(answer: Answer, *, as_json: bool, record: Path | None, variant: str | None) -> None:
    if answer.choice.dropped:
        say(f"{answer.choice.dropped} trials are left out: not every method has made as many")
    if as_json:
        print_json(answer_json(answer))
    else:
        print_sentences(answer_sentences(answer))
        for table in answer_tables(answer):
            print_table(table.headers, table.rows, title=table.title, keys=table.keys, spare=table.spare)
        if answer.winner is not None:
            print_text(f"\nTrain the chosen model with:\n  {answer.command(answer.winner)}")
        say(f"search folder: {answer.folder}")
    if record is not None:
        say(f"record: {write_record(answer, record, variant)}")
    if templates_are_there():
        say(f"page: {write_page(answer, _shown_again(answer))}")
    else:
        say("note: no page, because jinja2 is not installed; pip install 'caged-rec[report]'")


def _shown_again(answer: Answer) -> str:
    return shlex.join(["caged", "tune", "show", str(answer.folder)])


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(help="Folder that caged tune --out wrote.")],
    markdown: Annotated[Path | None, typer.Option(help="Also write the tables as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Also write the tables as LaTeX (booktabs).")] = None,
    record: Record = None,
    variant: Variant = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Print the answer of a search again and rewrite its page, from its journal, without training.

    Examples:

      caged tune show tunes/first --latex table.tex

      caged tune show tunes/first --record results
    """
    files = {"--markdown": markdown, "--latex": latex}
    for option, path in files.items():
        if path is not None:
            check_file(option, path, [folder])
    check_record(record, variant)
    answer = told_tune(folder)
    _report(answer, as_json=as_json, record=record, variant=variant)
    command = command_line()
    if markdown is not None:
        write_text(markdown, answer_markdown(answer, command))
    if latex is not None:
        write_text(latex, answer_latex(answer, command))
    for option, path in files.items():
        if path is not None:
            say(f"{option[2:]}: {path}")


@app.command()
def again(
    folder: Annotated[Path, typer.Argument(help="Folder of a search that has ended.")],
    out: Annotated[Path, typer.Option(help="New folder, a search with the same trials.")],
    maximise: Maximise = None,
    minimise: Minimise = None,
    subject_to: SubjectTo = None,
    record: Record = None,
    variant: Variant = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Judge the trials of a search by another goal, without training.

    The epoch of a trial never depends on the goal, so its validation metrics hold for any. What is chosen now and was
    not tested is trained and tested with caged tune --resume OUT.

    Examples:

      caged tune again tunes/first --maximise recall@20/niche --out tunes/niche
    """
    check_record(record, variant)
    wanted = [Constraint.parse(text) for text in subject_to or ()]
    answer = judge_again(folder, out, _objective(maximise, minimise), wanted, command=command_line())
    _report(answer, as_json=as_json, record=record, variant=variant)
    if answer.tests.left:
        say(f"to train and test what is chosen now: caged tune --resume {shlex.quote(str(out))}")


@app.command("preset")
def preset_command(
    record: Annotated[Path, typer.Argument(help="Record that --record wrote, e.g. results/tunes/epinions.json.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write to this file instead.")] = None,
    verbose: Verbose = False,
) -> None:
    """Print what a recorded search chose, for every method, as a file that --preset takes.

    Examples:

      caged tune preset results/tunes/epinions.json -o tuned_epinions.toml
    """
    if out is not None:
        check_file("--out", out, [record])
    text = preset_of_record(read_record(record), str(record))
    if out is None:
        print_source(text)
    else:
        write_text(out, text)
        say(f"preset: {out}")


@app.command("space")
def show_space(
    method: Annotated[str, typer.Argument(help="Name of the method.")],
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Print what a search tries for a method, as --space takes it."""
    registered(method)
    space = declared_space(method)
    if as_json:
        print_json({method: space_json(space)})
    else:
        print_source(space_toml(method, space))
