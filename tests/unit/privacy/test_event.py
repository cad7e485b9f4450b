"""Events: the noise is what the cost pays for, or there is no event."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sidelight.errors import LedgerError, SettingError
from sidelight.privacy.budget import Epsilon, Rho
from sidelight.privacy.event import (
    Event,
    Exponential,
    Exponentials,
    Gaussian,
    Gaussians,
    Laplace,
    Parallel,
    PermuteAndFlip,
    Threshold,
)

RHO, EPSILON = Rho(Fraction(1, 30)), Epsilon(Fraction(1, 7))
EVENTS = [
    Gaussian.at(RHO, what="age × sex", l2_squared=Fraction(2)),
    Laplace.at(EPSILON, what="total", l1=Fraction(1)),
    Laplace.at(RHO, what="total", l1=Fraction(1)),
    Parallel.of(
        [Laplace.at(EPSILON / n, what=f"group {n}", l1=Fraction(1)) for n in (3, 1, 2)], what="three groups"
    ),
    Exponential.at(RHO, what="1 of 455", sensitivity=Fraction(2), candidates=455),
    Exponential.at(EPSILON, what="1 of 455", sensitivity=Fraction(2), candidates=455),
    PermuteAndFlip.at(RHO, what="1 of 3", sensitivity=Fraction(1, 2), candidates=3),
    PermuteAndFlip.at(EPSILON, what="1 of 3", sensitivity=Fraction(1, 2), candidates=3),
    Gaussians.at(RHO, what="7 queries together", numbers=30, loss=Fraction(7, 3), largest=Fraction(5)),
    Threshold.at(
        RHO,
        what="labels of drug",
        l2_squared=Fraction(3),
        labels=3,
        own=1,
        delta=Fraction(1, 10**12),
        surcharge=RHO.value / 50,
    ),
    *(
        Exponentials.together(cost, what="5 draws", sensitivity=Fraction(2), candidates=455, draws=5)
        for cost in (RHO, EPSILON)
    ),
]
each_event = pytest.mark.parametrize("event", EVENTS, ids=lambda e: f"{e.name}-{type(e.cost).__name__}")
NOISE_UP = {"gaussian": "variance", "gaussians": "scale", "laplace": "scale", "threshold": "variance"}


@each_event
def test_the_noise_is_the_least_that_the_cost_pays_for(event):
    assert event.owed <= event.cost.value
    assert event.owed > event.cost.value * (1 - Fraction(1, 10**11))


@each_event
def test_noise_that_is_too_small_for_its_cost_cannot_be(event):
    if event.name in NOISE_UP:
        field = NOISE_UP[event.name]
        less = {field: getattr(event, field) * (1 - Fraction(1, 10**9))}
    elif event.name == "parallel":
        dearer = Laplace.at(event.cost * (1 + Fraction(1, 10**9)), what="group 4", l1=Fraction(1))
        less = {"parts": (*event.parts, dearer)}
    else:
        less = {"epsilon": event.epsilon * (1 + Fraction(1, 10**9))}

    with pytest.raises(AssertionError, match="owes"):
        replace(event, **less)


@each_event
def test_a_cost_that_is_too_small_for_its_noise_cannot_be(event):
    with pytest.raises(AssertionError, match="owes"):
        replace(event, cost=event.cost * (1 - Fraction(1, 10**9)))


@each_event
def test_noise_of_nonsense_size_cannot_be(event):
    numbers = [
        name for name in ("variance", "l2_squared", "scale", "l1", "epsilon", "sensitivity", "candidates")
    ]
    for name in numbers:
        if hasattr(event, name):
            for value in (0, -1):
                with pytest.raises(AssertionError, match="must be above 0"):
                    replace(event, **{name: value})


def test_gaussian_noise_has_no_pure_price():
    with pytest.raises(AssertionError, match="cannot be paid"):
        replace(EVENTS[0], cost=Epsilon(100))


def test_laplace_noise_paid_in_rho_pays_for_its_whole_epsilon():
    event = Laplace.at(Rho(8), what="", l1=Fraction(1))

    assert event.scale == Fraction(1, 4)  # ε = √(2ρ) = 4, and not ε = ρ = 8
    with pytest.raises(AssertionError, match="owes"):
        replace(event, cost=Rho(4))


def test_events_side_by_side_cost_as_much_as_the_dearest():
    event = EVENTS[3]

    assert event.cost == EPSILON
    with pytest.raises(AssertionError, match="at least one"):
        replace(event, parts=())
    with pytest.raises(AssertionError, match="in the currency"):
        replace(event, parts=(EVENTS[0],))


def test_free_noise_is_refused():
    with pytest.raises(SettingError, match="more than 0"):
        Gaussian.at(Rho(0), what="age", l2_squared=Fraction(2))
    with pytest.raises(SettingError, match="more than 0"):
        Exponential.at(Epsilon(0), what="age", sensitivity=Fraction(1), candidates=2)


def test_selection_runs_at_the_epsilon_of_its_own_theorem():
    rho = Rho(Fraction(1, 800))

    exponential = Exponential.at(rho, what="", sensitivity=Fraction(1), candidates=2)
    flip = PermuteAndFlip.at(rho, what="", sensitivity=Fraction(1), candidates=2)

    assert exponential.epsilon == Fraction(1, 10)  # √(8ρ)
    assert flip.epsilon == Fraction(1, 20)  # √(2ρ): ε²/8 would be wrong for it (spec 2.5)


def test_a_replaced_record_needs_twice_the_variance():
    one = Gaussian.at(RHO, what="", l2_squared=Fraction(1))
    two = Gaussian.at(RHO, what="", l2_squared=Fraction(2))

    assert two.variance / one.variance == pytest.approx(2)
    assert one.stddev == pytest.approx(1 / math.sqrt(2 / 30))


def test_the_discrete_laplace_has_its_own_stddev():
    unit = Laplace.at(Epsilon(1), what="", l1=Fraction(1))
    wide = Laplace.at(Epsilon(Fraction(1, 1000)), what="", l1=Fraction(1))
    z = range(-60, 61)
    weights = [math.exp(-abs(k)) for k in z]

    assert unit.stddev == pytest.approx(
        math.sqrt(sum(k * k * w for k, w in zip(z, weights, strict=True)) / sum(weights))
    )
    assert wide.stddev == pytest.approx(1000 * math.sqrt(2), rel=1e-6)
    # It is divided by, so it is above 0 as a double, too.
    assert 0 < Laplace.at(Epsilon(10**6), what="", l1=Fraction(1)).stddev < 1e-6


@each_event
def test_an_event_survives_json(event):
    assert Event.from_json(event.as_json()) == event


def test_an_unknown_event_is_refused_and_never_guessed():
    for name in ("skellam", None, 3, ["gaussian"]):
        with pytest.raises(LedgerError, match="unknown event"):
            Event.from_json({"event": name})


@pytest.mark.parametrize(
    "change",
    [
        {"variance": "1/1000"},  # too little noise
        {"variance": "much"},
        {"variance": "1/0"},
        {"cost": {"euro": "1"}},
        {"cost": {"rho": "1", "epsilon": "1"}},
        {"cost": "1"},
        {"what": 3},
        {"colour": "red"},
    ],
    ids=str,
)
def test_an_event_that_was_edited_is_refused(change):
    with pytest.raises(LedgerError, match="gaussian event"):
        Event.from_json(EVENTS[0].as_json() | change)


def test_an_event_that_lost_a_field_is_refused():
    plain = EVENTS[0].as_json()
    del plain["variance"]

    with pytest.raises(LedgerError, match="fields"):
        Event.from_json(plain)
