"""What every command prints, written anew into tests/golden; look at the difference before you commit it.

python -m tools.golden            all of them
python -m tools.golden audit      only these
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from caged.files import write_text
from tests.golden.cases import CASES, HELP, KEPT, build_world, help_text, kept_text


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the kept output of the commands anew.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CASES)}, help; all of them where none is named")
    names = parser.parse_args(arguments).names or [*CASES, "help"]
    unknown = [name for name in names if name not in CASES and name != "help"]
    if unknown:
        parser.error(f"no command is kept as '{unknown[0]}'; known: {', '.join(CASES)}, help")
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder)
        build_world(world)
        for name in names:
            if name == "help":
                for command in HELP:
                    write_text(KEPT / "help" / f"{'-'.join(('caged', *command))}.txt", help_text(command))
            else:
                write_text(KEPT / f"{name}.txt", kept_text(CASES[name], world))


if __name__ == "__main__":
    main()
