"""`python -m benchmarks`, in a clone of the repository."""

import typer

from benchmarks.command import bench
from caged.cli.main import run

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(bench)


def main() -> None:
    run(app, "python -m benchmarks")


if __name__ == "__main__":
    main()
