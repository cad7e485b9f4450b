"""``python -m sidelight`` is ``sidelight``; so is the command, which begins here."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C works from the first import on, when nothing can have been spent yet."""
    try:
        from sidelight.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted while starting; nothing was read, and nothing was spent.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
