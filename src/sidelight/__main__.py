"""``python -m sidelight`` is ``sidelight``."""

from sidelight.cli.app import main

main()
