"""What may be set, what a wrong word is told, and that no setting changes what is promised."""

from dataclasses import FrozenInstanceError, fields
from fractions import Fraction

import numpy as np
import pytest

import sidelight as sl
from sidelight.data.reading.file_format import FileFormat
from sidelight.errors import SettingError
from sidelight.evaluation.screening import screen
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.statistics.settings import CellSettings, MeanSettings, QuantileSettings
from sidelight.statistics.terms import GroupTerms, Terms
from sidelight.testing import SeededNoise

VALUES = np.linspace(0, 10, 200)
EPSILONS = (0.5, 1.0)


def groups() -> list[sl.Group]:
    return [sl.Group(VALUES, epsilon=epsilon) for epsilon in EPSILONS] + [sl.Group(VALUES, public=True)]


ASK = {
    "mixed_mean": lambda **more: sl.mixed_mean(groups(), bounds=(0, 10), **more),
    "mixed_quantile": lambda **more: sl.mixed_quantile(groups(), 0.5, bounds=(0, 10), **more),
    "grouped_mean": lambda **more: sl.grouped_mean(
        {"x": VALUES, "r": [0, 1] * 100}, "x", by="r", cells=[0, 1], bounds=(0, 10), epsilon=1.0, **more
    ),
    "best_mixture_error": lambda **more: sl.best_mixture_error(None, None, **more),
    "screen": lambda **more: screen(None, {}, epsilon=1.0, **more),
}


@pytest.mark.parametrize(
    ("function", "wrong", "meant"),
    [
        ("mixed_mean", "varience", "variance"),
        ("mixed_mean", "density", None),
        ("mixed_mean", "ledgr", "ledger"),
        ("mixed_quantile", "merge", None),
        ("mixed_quantile", "densty", "density"),
        ("grouped_mean", "sizeshare", "size_share"),
        ("grouped_mean", "bias", None),
        ("best_mixture_error", "accounting", None),
        ("screen", "legder", "ledger"),
    ],
)
def test_a_word_that_is_no_setting_is_refused_with_the_settings_there_are(function, wrong, meant):
    with pytest.raises(SettingError, match=f"{function} has no setting '{wrong}'; it has ") as refusal:
        ASK[function](**{wrong: 1})

    assert ("Did you mean" in str(refusal.value)) == (meant is not None)
    if meant is not None:
        assert str(refusal.value).endswith(f"Did you mean '{meant}'?")


@pytest.mark.parametrize("kind", [MeanSettings, QuantileSettings, CellSettings, GroupTerms, Terms])
def test_settings_are_frozen_and_by_keyword_alone(kind):
    with pytest.raises(TypeError):
        kind(1)
    name = fields(kind)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(kind(), name, None)


@pytest.mark.parametrize("kind", [MeanSettings, QuantileSettings, CellSettings])
def test_no_word_is_both_a_setting_and_a_term(kind):
    assert not {one.name for one in fields(kind)} & {one.name for one in fields(GroupTerms)}


OTHER: dict[str, dict[str, object]] = {
    "mixed_mean": {
        "bias": "measure", "bias_factor": 3.0, "confidence": 0.5, "alone": True, "variance": "private",
        "weights": "proportional", "merge": True, "variance_share": 0.5, "size_share": 0.5,
        "clipped_share": 0.5,
    },
    "mixed_quantile": {
        "bias": 1.0, "bias_factor": 3.0, "confidence": 0.5, "alone": True, "weights": "mean", "variance": 2.0,
        "density": "private", "density_share": 0.5, "size_share": 0.5,
    },
    "grouped_mean": {
        "missing": 3.0, "variance": 4.0, "confidence": 0.5, "size_share": 0.5, "variance_share": 0.5,
        "file": FileFormat(delimiter=";"),
    },
}  # fmt: skip


@pytest.mark.parametrize("unit", ["replace", "add-or-remove"])
@pytest.mark.parametrize(("function", "name"), [(f, name) for f, other in OTHER.items() for name in other])
def test_no_setting_makes_anybody_spend_more(function, name, unit):
    ledger = MemoryLedger(Promise(Budget(epsilon=5.0, delta=0.0), Unit(unit), "people"))

    answer = ASK[function](**{name: OTHER[function][name]}, ledger=ledger, noise=SeededNoise(7))

    # Merged groups are summed at the least of their ε, so those with more leave some unspent.
    assert ledger.spent <= 1 if name == "merge" else ledger.spent == 1
    if function != "grouped_mean":
        spent = [sum(event.cost.value for event in mine) for mine in answer.events]
        allowed = [Fraction(epsilon) for epsilon in EPSILONS] + [0]
        assert all(mine <= most for mine, most in zip(spent, allowed, strict=True))
        assert name == "merge" or spent == allowed


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (MeanSettings, [one.name for one in fields(MeanSettings)]),
        (QuantileSettings, [one.name for one in fields(QuantileSettings)]),
        (CellSettings, [one.name for one in fields(CellSettings)]),
    ],
)
def test_the_test_above_tries_every_setting(kind, settings):
    function = {MeanSettings: "mixed_mean", QuantileSettings: "mixed_quantile", CellSettings: "grouped_mean"}

    assert sorted(OTHER[function[kind]]) == sorted(settings)


def test_a_density_cannot_be_measured_where_nobody_is_private():
    public = [sl.Group(VALUES, public=True)]

    with pytest.raises(SettingError, match="needs a private group"):
        sl.mixed_quantile(public, 0.5, bounds=(0, 10), density="private", alone=True)


@pytest.mark.parametrize("share", ["size_share", "density_share"])
def test_a_share_of_0_is_refused_before_a_run_begins(share):
    ledger = MemoryLedger(Promise(Budget(epsilon=5.0, delta=0.0), Unit("add-or-remove"), "people"))

    with pytest.raises(SettingError, match=f"{share} must be a share"):
        sl.mixed_quantile(groups(), 0.5, bounds=(0, 10), ledger=ledger, **{share: 0.0})

    assert ledger.runs() == ()
