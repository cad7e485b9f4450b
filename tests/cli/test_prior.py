"""``sidelight prior fit``: a folder that a release can start from."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from sidelight.cli.prior import app
from sidelight.data.schema import Schema
from sidelight.errors import ReleaseError
from sidelight.public.prior import Prior
from sidelight.releases.public_data import read_public

SCHEMA = """
[columns.sex]
kind = "categorical"
labels = ["f", "m"]

[columns.age]
kind = "integer"
low = 0
high = 99
bins = 5
"""


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{'fm'[rng.integers(2)]},{rng.integers(100)}" for _ in range(80)]
    (tmp_path / "public.csv").write_text("sex,age\n" + "\n".join(lines))
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path


def fit(files, *more):
    arguments = ["fit", str(files / "public.csv"), "--schema", str(files / "people.toml")]
    return CliRunner().invoke(app, [*arguments, "--out", str(files / "prior"), "--workload", "2-way", *more])


def test_a_prior_is_fitted_written_and_read_again(files):
    done = fit(files, "--json")

    assert done.exit_code == 0
    assert json.loads(done.stdout)["records"] == 80
    found = read_public(str(files / "prior"), Schema.read(files / "people.toml"))
    assert isinstance(found, Prior)
    assert found.records == 80


def test_a_folder_that_holds_something_is_not_written_over(files):
    fit(files)

    again = fit(files)

    assert isinstance(again.exception, ReleaseError)
