"""The command `caged`, and `python -m caged`. Ctrl-C while it is still loading prints no traceback."""

import sys


def main() -> None:
    try:
        from caged.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
