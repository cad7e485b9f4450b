"""The command line as a person would use it, but in this process."""

import contextlib
import io
import os
import sys
import warnings
from typing import NamedTuple
from unittest import mock

import pytest

from sidelight.cli.app import main


class Done(NamedTuple):
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """All that it printed: results, then talk."""
        return self.stdout + self.stderr


def sidelight(*args: object, folder: str | os.PathLike[str] = ".") -> Done:
    """Run the command in a folder; its output and exit code are caught."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["sidelight", *map(str, args)]),
        warnings.catch_warnings(),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    return Done(stop.value.code, out.getvalue(), err.getvalue())
