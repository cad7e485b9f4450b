"""The README's Python lines run as they stand, and its commands exist."""

import contextlib
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer

from sidelight.cli._shared import parse_where
from sidelight.data.schema import Schema
from sidelight.releases.where import codes_where

README = Path(__file__).resolve().parent.parent.parent / "README.md"


def block(language: str, heading: str) -> str:
    text = README.read_text(encoding="utf-8")
    return re.search(rf"## {heading}.*?```{language}\n(.*?)```", text, re.DOTALL)[1]


def test_the_python_example_runs(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["age,sex"] + [f"{rng.integers(18, 80)},{rng.choice(['f', 'm'])}" for _ in range(400)]
    for name in ("public.csv", "people.csv"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    names: dict[str, object] = {}
    with contextlib.chdir(tmp_path):
        exec(block("python", "In Python"), names)

    assert (tmp_path / "out" / "release.json").is_file()
    assert names["release"].count(["age", "sex"]).sum() == pytest.approx(400)


def test_every_command_of_the_readme_exists():
    from sidelight.cli.app import app

    group = typer.main.get_command(app)
    for line in block("console", "On the command line").splitlines():
        words = shlex.split(line.split("#")[0])
        assert words[0] == "sidelight"
        command = group.commands[words[1]]
        if hasattr(command, "commands"):
            command = command.commands[words[2]]
        options = {name for parameter in command.params for name in parameter.opts}
        for word in words:
            assert not word.startswith("--") or word in options, (words[1], word)


def test_the_condition_of_the_readme_fits_a_drafted_schema():
    asked = parse_where(re.findall(r"--where (age=\S+)", block("console", "On the command line")))
    schema = Schema.draft(pa.table({"age": [18 + i % 73 for i in range(400)]}))

    assert codes_where(asked, schema)["age"].sum() == 9


def test_front_door_names_stay_what_they_are():
    import sidelight as sl

    for _ in range(2):  # a name must not turn into a module once it was used
        for name in ("Schema", "Workload", "Group"):
            assert isinstance(getattr(sl, name), type)
        for name in ("release", "evaluate", "mixed_mean", "mixed_quantile", "best_mixture_error"):
            assert callable(getattr(sl, name)), name
        assert sl.testing.SeededNoise(7).is_private is False
