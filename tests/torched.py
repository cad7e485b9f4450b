"""Marks of tests that train a network: `make test-slow` runs them; without torch they skip, with a reason."""

from importlib.util import find_spec

import pytest

WHY = "torch is not installed: pip install 'sidelight[torch]'"

NEEDS_TORCH = [pytest.mark.torch, pytest.mark.skipif(find_spec("torch") is None, reason=WHY)]


def torched(mechanism: str) -> list[pytest.MarkDecorator]:
    """The marks of a test that runs this mechanism."""
    return NEEDS_TORCH if mechanism.startswith("gem") else []
