"""`sidelight ledger show`: what an interrupted run has paid, and what it set aside."""

import re
from fractions import Fraction

from typer.testing import CliRunner

from sidelight.cli.app import app
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.event import Gaussian
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit


def shown(path):
    line = re.search(r"^spent .*$", CliRunner().invoke(app, ["ledger", "show", str(path)]).stdout, re.M)
    return line.group(), [float(said) for said in re.findall(r"ε = ([\d.]+)", line.group())]


def test_what_an_open_run_paid_is_told_apart_from_what_it_set_aside(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = SqlLedger.create(path, Promise(Budget(epsilon=1.0, delta=1e-9), Unit(), "people"))
    run = ledger.begin(Rho(Fraction(1, 200)), label="ladder")
    ledger.append(Gaussian.at(Rho(Fraction(1, 2000)), what="a", l2_squared=Fraction(2)), run=run)

    line, (paid, used) = shown(path)

    assert "with what open runs have set aside" in line
    assert paid < used / 2
    ledger.close(run)
    line, (left,) = shown(path)
    assert left == paid
    assert "set aside" not in line
